#include "prism/training/objective/classification.h"

#include "prism/checkpoint/model_folder.h"
#include "prism/core/error.h"
#include "prism/evaluation/classification.h"
#include "prism/models/batch.h"
#include "prism/models/cost.h"
#include "prism/training/objective/vocabulary.h"

namespace prism {

namespace fs = std::filesystem;

void Classification::open(Recipe& recipe) {
  recipe_ = recipe;
  const fs::path folder = recipe_.data.folder;
  PRISM_CHECK(!folder.empty(), "train",
              "expected data.folder, made by prism tokenize --label; found none; give --data.folder DIR.");
  train_data_ = std::make_unique<LabelledDataset>(folder, "train");
  const auto& info = train_data_->info();
  const auto classes = static_cast<int64_t>(info.scheme.classes.size());
  PRISM_CHECK(recipe_.model.classes == classes, "train",
              "expected model.classes {}, the number of classes in {}; found {}; change it.", classes, folder.string(),
              recipe_.model.classes);
  tokenizer_ = load_data_tokenizer(folder, folder, "examples", info.tokenizer_fingerprint);
  take_vocab_size(recipe_.model, info.vocab_size);
  loader_ = std::make_unique<ExampleLoader>(*train_data_, ExampleLoaderOptions{.context = recipe_.model.context,
                                                                               .rows = recipe_.train.batch_rows,
                                                                               .seed = recipe_.seed,
                                                                               .fraction = recipe_.data.fraction});
  if (recipe_.data.examples == 0) recipe_.data.examples = loader_->size();
  PRISM_CHECK(recipe_.data.examples == loader_->size(), "train",
              "expected data.examples {}, the training examples of {} after data.fraction; found {}; set it to 0, or "
              "restore the data.",
              loader_->size(), folder.string(), recipe_.data.examples);
  if (info.valid_examples > 0) valid_data_ = std::make_unique<LabelledDataset>(folder, "valid");
  if (recipe_.final.test) test_data_ = std::make_unique<LabelledDataset>(folder, "test");
  complete(recipe_.model);
  recipe = recipe_;
}

void Classification::make_model(const Recipe& recipe, torch::ScalarType type) {
  classifier_ = Classifier(recipe.model);
  classifier_->set_compute_type(type);
  classifier_->set_recompute(recipe.train.recompute);
  set_word_starts(*classifier_, tokenizer(), recipe.data.folder);
  budgets_ = BudgetTraining(recipe);
}

ExampleBatch& Classification::batch_of(int64_t n) {
  const auto kept = batches_.find(n);
  if (kept != batches_.end()) return kept->second;
  while (batches_.size() >= static_cast<size_t>(recipe_.train.accumulate)) batches_.erase(batches_.begin());
  return batches_.emplace(n, loader_->batch(n)).first->second;
}

torch::Tensor Classification::forward(int64_t batch, const BatchView& view) {
  ExampleTensors tensors(batch_of(batch), view.rows);
  auto budgets = budgets_.of_batch(batch);
  Auxiliary unread(budgets_.progress());  // its presence tells head budgets that the pass trains
  tensors.context.budgets = &budgets;
  tensors.context.auxiliary = view.auxiliary != nullptr ? view.auxiliary : &unread;
  tensors.context.probe = view.probe;
  auto hidden = classifier_(tensors.tokens_BT, tensors.context);
  budgets_.note(budgets);
  return hidden;
}

torch::Tensor Classification::loss(int64_t batch, const torch::Tensor& hidden) {
  const ExampleTensors tensors(batch_of(batch), hidden.size(0));
  return ClassificationHead::loss(classifier_->head.logits(hidden, tensors.context.lengths_B), tensors.labels_B);
}

std::optional<Validation> Classification::validate() {
  const auto labelled =
      label_examples(classifier_, *valid_data_, {.batch = recipe_.train.batch_rows, .seed = recipe_.seed});
  if (!labelled) return std::nullopt;
  const auto scores = score(*labelled);
  Validation result{scores.accuracy, scores.examples, scores.loss};
  if (!labelled->budgets.empty()) result.head_share = mean_shares(labelled->budgets, recipe_.model.layers.size());
  return result;
}

std::string Classification::fingerprint() const {
  return fmt::format("{}-{}-{:016x}-{:016x}", train_data_->info().tokenizer_fingerprint, loader_->size(),
                     train_data_->fingerprint(), valid_data_ ? valid_data_->fingerprint() : 0);
}

void Classification::describe(StartRecord& record) const {
  record.tokenizer = train_data_->info().tokenizer_fingerprint;
  if (valid_data_)
    record.validation = fmt::format("{:016x}, {} examples", valid_data_->fingerprint(), valid_data_->size());
}

std::vector<std::string> Classification::notes() const {
  std::vector<std::string> notes;
  if (const int64_t cut = loader_->cut_examples(); cut > 0)
    notes.push_back(fmt::format("{} of {} training texts are longer than model.context, {} tokens, and lose their end",
                                cut, loader_->size(), recipe_.model.context));
  if (!valid_data_)
    notes.push_back(
        fmt::format("{} has no validation examples, so accuracy is not measured while training; make the "
                    "data with --valid or --valid-share",
                    recipe_.data.folder));
  return notes;
}

int64_t Classification::flops_per_token() const {
  return model_cost(*classifier_).flops_per_token;
}

double Classification::flops_per_unit() const {
  auto config = classifier_->config();
  const double length = loader_->mean_length();
  config.context = std::max(int64_t{1}, static_cast<int64_t>(length));
  return static_cast<double>(model_cost(config).flops_per_token) * length;
}

void Classification::save(const fs::path& folder) const {
  save_classifier(folder, classifier_, tokenizer(), train_data_->info().scheme);
}

std::optional<std::vector<RunRecord>> Classification::measure_finals() {
  std::vector<RunRecord> records;
  if (!test_data_) return records;
  const auto labelled =
      label_examples(classifier_, *test_data_, {.batch = recipe_.train.batch_rows, .seed = recipe_.seed});
  if (!labelled) return std::nullopt;
  const auto scores = score(*labelled);
  ClassificationRecord record{"test",
                              scores.examples,
                              scores.accuracy,
                              scores.balanced_accuracy,
                              scores.macro_f1,
                              scores.loss,
                              scores.confusion,
                              {},
                              mean_shares(labelled->budgets, recipe_.model.layers.size()),
                              mean_kept_shares(labelled->budgets, recipe_.model.layers.size())};
  for (size_t i = 0; i < labelled->labels.size(); ++i)
    if (labelled->predicted[i] != labelled->labels[i])
      record.wrong.push_back({static_cast<int64_t>(i), labelled->labels[i], labelled->predicted[i]});
  records.emplace_back(std::move(record));
  return records;
}

}  // namespace prism
