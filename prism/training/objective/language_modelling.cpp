#include "prism/training/objective/language_modelling.h"

#include <algorithm>
#include <utility>

#include "prism/checkpoint/model_folder.h"
#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/core/random.h"
#include "prism/core/text/printable.h"
#include "prism/models/cost.h"
#include "prism/training/objective/final.h"
#include "prism/training/objective/validation.h"
#include "prism/training/objective/vocabulary.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

void check_same_tokenizer(const TokenDataset& a, const TokenDataset& b) {
  PRISM_CHECK(
      a.tokenizer() == b.tokenizer(), "train",
      "data: expected parts that were made with one tokenizer; found that {} was made with tokenizer \"{}\" and "
      "{} with \"{}\"; tokenize both with the same.",
      a.folder().string(), a.tokenizer(), b.folder().string(), b.tokenizer());
}

/// Separates the numbers that draw prompts from others of the same seed.
constexpr uint64_t kPromptStream = 0x50524F4D5054;  // "PROMPT"

void check_prompts(const Recipe& recipe) {
  if (!divides_windows(recipe)) return;
  PRISM_CHECK(!recipe.data.document_mask, "train",
              "expected windows of one prompt and what follows it with head budgets or train.prompts; found "
              "data.document_mask, which divides windows into documents; leave it out.");
  PRISM_CHECK(
      recipe.model.context >= 2, "train",
      "model.context: expected at least 2 tokens with head budgets or train.prompts, one of which is the prompt; "
      "found {}; raise it.",
      recipe.model.context);
}

/// Checks that the validation predicts a token, which windows of conversations need not have.
void check_has_labels(const fs::path& folder, WindowLoader windows, const Recipe& recipe) {
  const int64_t tokens = recipe.train.eval_tokens;
  int64_t read = 0;
  while (windows.position() < windows.windows_per_epoch() && (tokens == 0 || read < tokens)) {
    Batch batch = windows.next();
    BatchTensors tensors(batch);
    if (divides_windows(recipe)) tensors.predict_second_halves();
    if (tensors.labels_BT.ge(0).any().item<bool>()) return;
    read += batch.rows * batch.context;
  }
  throw InputError("train",
                   fmt::format("expected tokens of the assistant in the validation shards of {}; found none in "
                               "the {} tokens that are read; raise train.eval_tokens, or give prism tokenize a "
                               "larger --valid-share.",
                               folder.string(), read));
}

}  // namespace

void LanguageModelling::open(Recipe& recipe) {
  recipe_ = recipe;
  const fs::path folder = recipe_.data.folder;
  PRISM_CHECK(!folder.empty(), "train",
              "expected data.folder, made by prism tokenize; found none; give --data.folder DIR.");
  const auto mixture = open_training_data();
  const auto& info = train_data_[0]->info();
  tokenizer_ = load_data_tokenizer(folder, train_data_[0]->folder(), "shards", info ? info->tokenizer_fingerprint : "");
  take_vocab_size(recipe_.model, info ? info->vocab_size : tokenizer_ ? tokenizer_->vocab_size() : 0);
  const int64_t end_of_text = info         ? info->end_of_text
                              : tokenizer_ ? tokenizer_->special_ids().opening.value_or(-1)
                                           : -1;
  constexpr int64_t kLargestContext = int64_t{1} << 24;
  PRISM_CHECK(recipe_.model.context >= 1 && recipe_.model.context <= kLargestContext, "train",
              "model.context: expected 1 to {} tokens; found {}; change it.", kLargestContext, recipe_.model.context);
  check_prompts(recipe_);
  const WindowOptions options{.context = recipe_.model.context,
                              .rows = recipe_.train.batch_rows,
                              .seed = recipe_.seed,
                              .document_mask = recipe_.data.document_mask,
                              .stride = recipe_.data.stride,
                              .word_starts = tokenizer_ && has_word_positions(recipe_.model) ? tokenizer_->word_starts()
                                                                                             : std::vector<uint8_t>()};
  loader_ = std::make_unique<WindowLoader>(mixture, options, end_of_text);
  const int64_t needed_windows = recipe_.train.batch_rows * recipe_.train.accumulate;
  PRISM_CHECK(recipe_.data.stride <= recipe_.model.context || loader_->windows_per_epoch() >= needed_windows, "train",
              "expected at least {} windows in the data, as many as one step reads (batch_rows x accumulate); found {} "
              "at data.stride {}; lower data.stride, train.batch_rows or train.accumulate.",
              needed_windows, loader_->windows_per_epoch(), recipe_.data.stride);
  open_validation_data(options, end_of_text);
  complete(recipe_.model);
  check_samples();
  check_final(recipe_.final, tokenizer(), valid_windows_.get());
  recipe = recipe_;
}

std::vector<WeightedData> LanguageModelling::open_training_data() {
  auto sources = recipe_.data.mixture;
  if (sources.empty()) sources.push_back({recipe_.data.folder, 1.0});
  std::vector<WeightedData> mixture;
  for (const auto& [folder, weight] : sources) {
    PRISM_CHECK(!folder.empty(), "train", "data.mixture: expected a folder in each part; found none; name it.");
    train_data_.push_back(std::make_unique<TokenDataset>(folder, "train"));
    check_same_tokenizer(*train_data_.front(), *train_data_.back());
    has_marks_ = has_marks_ || train_data_.back()->has_marks();
    mixture.push_back({train_data_.back().get(), weight});
  }
  return mixture;
}

void LanguageModelling::open_validation_data(WindowOptions options, int64_t end_of_text) {
  const fs::path folder = recipe_.data.folder;
  const auto& info = train_data_[0]->info();
  if (find_shards(folder, "valid").empty()) {
    PRISM_CHECK(!recipe_.data.mixture.empty() || !info || info->valid_tokens == 0, "train",
                "expected the validation shards that data.json lists; found none in {}; restore them, or run prism "
                "tokenize again.",
                folder.string());
    return;
  }
  valid_data_ = std::make_unique<TokenDataset>(folder, "valid");
  check_same_tokenizer(*train_data_[0], *valid_data_);
  PRISM_CHECK(valid_data_->size() > recipe_.model.context, "train",
              "expected more than {} validation tokens, one context; found {} in {}; give prism tokenize a larger "
              "--valid-share.",
              recipe_.model.context, valid_data_->size(), folder.string());
  options.shuffle = false;
  options.stride = 0;
  valid_windows_ = std::make_unique<WindowLoader>(*valid_data_, options, end_of_text);
  if (valid_data_->has_marks()) check_has_labels(folder, *valid_windows_, recipe_);
}

void LanguageModelling::make_model(const Recipe& recipe, torch::ScalarType type) {
  decoder_ = Decoder(recipe.model);
  decoder_->set_compute_type(type);
  decoder_->set_recompute(recipe.train.recompute);
  set_word_starts(*decoder_, tokenizer(), recipe.data.folder);
  budgets_ = BudgetTraining(recipe);
}

Batch& LanguageModelling::batch_of(int64_t n) {
  const auto kept = batches_.find(n);
  if (kept != batches_.end()) return kept->second;
  const int64_t window = n * recipe_.train.batch_rows;
  if (loader_->position() != window) loader_->seek(window);
  while (batches_.size() >= static_cast<size_t>(recipe_.train.accumulate)) batches_.erase(batches_.begin());
  return batches_.emplace(n, loader_->next()).first->second;
}

BatchTensors LanguageModelling::tensors_of(int64_t batch, int64_t rows) {
  Batch& whole = batch_of(batch);
  // The tensors are views of the batch, so fewer rows means its first ones.
  const int64_t all = std::exchange(whole.rows, rows == 0 ? whole.rows : std::min(rows, whole.rows));
  BatchTensors tensors(whole);
  const int64_t used = std::exchange(whole.rows, all);
  if (!divides_windows(recipe_)) return tensors;
  const auto prompts_B = torch::empty({used}, torch::kInt);
  auto* prompts = prompts_B.mutable_data_ptr<int32_t>();
  for (int64_t b = 0; b < used; ++b) {
    const int64_t window = batch * recipe_.train.batch_rows + b;
    Random random(mix64(static_cast<uint64_t>(recipe_.seed)) + kPromptStream, static_cast<uint64_t>(window));
    prompts[b] = 1 + static_cast<int32_t>(random.below(static_cast<uint64_t>(whole.context - 1)));
  }
  tensors.set_prompts(prompts_B);
  return tensors;
}

double LanguageModelling::skip_share(int64_t batch) {
  const int64_t parts = recipe_.train.accumulate, first = batch - batch % parts;
  if (parts == 1) return 1;
  const auto labels = [&](int64_t n) {
    return static_cast<double>(tensors_of(n, 0).labels_ahead(recipe_.model.skip).ge(0).sum().item<int64_t>());
  };
  double all = 0;
  for (int64_t n = first; n < first + parts; ++n) all += labels(n);
  return all > 0 ? labels(batch) * static_cast<double>(parts) / all : 1;
}

torch::Tensor LanguageModelling::forward(int64_t batch, const BatchView& view) {
  auto tensors = tensors_of(batch, view.rows);
  auto budgets = budgets_.of_batch(batch);
  Auxiliary unread(budgets_.progress());  // its presence tells head budgets that the pass trains
  tensors.context.budgets = &budgets;
  tensors.context.auxiliary = view.auxiliary != nullptr ? view.auxiliary : &unread;
  tensors.context.probe = view.probe;
  auto hidden = decoder_(tensors.tokens_BT, tensors.context);
  budgets_.note(budgets);
  if (decoder_->skip_head && view.auxiliary != nullptr)
    view.auxiliary->add(recipe_.train.skip_weight * skip_share(batch) *
                        decoder_->skip_head->loss(hidden, tensors.labels_ahead(recipe_.model.skip)));
  return hidden;
}

torch::Tensor LanguageModelling::loss(int64_t batch, const torch::Tensor& hidden) {
  return decoder_->head.loss(hidden, tensors_of(batch, hidden.size(0)).labels_BT, recipe_.train.z_loss);
}

int64_t LanguageModelling::labels(int64_t batch) {
  if (!has_marks_ && !divides_windows(recipe_)) return recipe_.train.batch_rows * recipe_.model.context;
  return tensors_of(batch, 0).labels_BT.ge(0).sum().item<int64_t>();
}

std::optional<Validation> LanguageModelling::validate() {
  const auto found = validation_loss(decoder_, *valid_windows_, recipe_.train.eval_tokens, divides_windows(recipe_));
  if (!found) return std::nullopt;
  return Validation{found->loss, found->tokens, {}, found->head_share};
}

std::string LanguageModelling::fingerprint() const {
  std::string text;
  for (const auto& part : train_data_)
    text += fmt::format("{}-{}-{:016x}-", part->tokenizer(), part->size(), part->fingerprint());
  return fmt::format("{}{:016x}", text, valid_data_ != nullptr ? valid_data_->fingerprint() : 0);
}

void LanguageModelling::describe(StartRecord& record) const {
  record.tokenizer = train_data_[0]->tokenizer();
  if (!valid_data_) return;
  record.validation = fmt::format("{:016x}, {} tokens{}", valid_data_->fingerprint(), recipe_.train.eval_tokens,
                                  divides_windows(recipe_) ? ", second halves of windows" : "");
}

std::vector<std::string> LanguageModelling::notes() const {
  if (tokenizer_ || recipe_.train.sample_prompts.empty()) return {};
  return {fmt::format("{} has no tokenizer.json, so train.sample_prompts are left out", recipe_.data.folder)};
}

int64_t LanguageModelling::flops_per_token() const {
  const int64_t skip_head = decoder_->skip_head ? 2 * decoder_->skip_head->weight().numel() : 0;
  return model_cost(*decoder_).flops_per_token + skip_head;
}

void LanguageModelling::save(const fs::path& folder) const {
  save_model(folder, *decoder_, tokenizer());
}

GenerateOptions LanguageModelling::sample_options(const std::string& prompt, double temperature) const {
  GenerateOptions options;
  const auto room = room_after(recipe_.model, *tokenizer_, prompt);
  options.max_new_tokens = std::min(recipe_.train.sample_tokens, room.value_or(recipe_.train.sample_tokens));
  options.stop_on_signals = false;  // a sample cut short would stay in the records
  options.sampler.temperature = temperature;
  options.sampler.seed = recipe_.seed;
  return options;
}

void LanguageModelling::check_samples() const {
  if (!tokenizer_) return;
  for (const auto& prompt : recipe_.train.sample_prompts) {
    try {
      room_after(recipe_.model, *tokenizer_, prompt);
    } catch (const InputError&) {
      throw InputError("train", fmt::format("train.sample_prompts: expected prompts shorter than model.context, {} "
                                            "tokens; found a longer one, \"{}\"; shorten it or raise model.context.",
                                            recipe_.model.context, short_line(prompt, 60)));
    }
  }
}

std::vector<SampleRecord> LanguageModelling::samples() {
  std::vector<SampleRecord> samples;
  if (!tokenizer_) return samples;
  for (const auto& prompt : recipe_.train.sample_prompts)
    for (const double temperature : sample_temperatures(recipe_.train.sample_temperature)) {
      const auto sample = generate(decoder_, *tokenizer_, prompt, sample_options(prompt, temperature));
      samples.push_back({prompt, temperature, sample.text});
    }
  return samples;
}

std::optional<std::vector<RunRecord>> LanguageModelling::measure_finals() {
  return final_records(decoder_, tokenizer(), valid_windows_.get(), recipe_.final);
}

}  // namespace prism
