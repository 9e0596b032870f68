#include "prism/evaluation/classification.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/statistics.h"
#include "prism/core/stop.h"
#include "prism/data/labelled/example_loader.h"

namespace prism {
namespace {

/// The decisions for all examples of a split. Batches are copied into tensors made beforehand: a small tensor kept from
/// each batch would lie between the freed activations of that batch and hinder the C library from joining them.
class BudgetRows {
 public:
  explicit BudgetRows(int64_t count) : count_(count) {}

  void add(const std::vector<BudgetDecision>& decisions, const std::vector<int64_t>& examples) {
    if (layers_.empty()) make(decisions);
    const auto rows = torch::tensor(examples, torch::kLong);
    for (size_t l = 0; l < decisions.size(); ++l) {
      if (!decisions[l].share_B.defined()) continue;
      for (auto part : kParts) (layers_[l].*part).index_copy_(0, rows, (decisions[l].*part).cpu());
    }
  }
  std::vector<BudgetDecision> take() && { return std::move(layers_); }

 private:
  static constexpr torch::Tensor BudgetDecision::*kParts[] = {&BudgetDecision::share_B, &BudgetDecision::probability_BH,
                                                              &BudgetDecision::kept_BH};

  void make(const std::vector<BudgetDecision>& decisions) {
    layers_.resize(decisions.size());
    for (size_t l = 0; l < decisions.size(); ++l) {
      if (!decisions[l].share_B.defined()) continue;
      for (auto part : kParts) {
        const auto& rows = decisions[l].*part;
        auto sizes = rows.sizes().vec();
        sizes[0] = count_;
        layers_[l].*part = at::empty(sizes, rows.options().device(torch::kCPU));
      }
    }
  }

  int64_t count_;
  std::vector<BudgetDecision> layers_;
};

double ratio(double part, double whole) {
  return whole == 0 ? NAN : part / whole;
}

const std::map<std::string, BudgetChange::Heads> kHeads = {{"own", BudgetChange::Heads::own},
                                                           {"all", BudgetChange::Heads::all},
                                                           {"random", BudgetChange::Heads::drawn},
                                                           {"shuffled", BudgetChange::Heads::shuffled}};

void check_options(const LabelOptions& options, const Classifier& classifier) {
  PRISM_CHECK(options.batch >= 1 && options.batch <= 65536, "classification",
              "--batch: expected 1 to 65536 texts per forward pass; found {}; change it.", options.batch);
  PRISM_CHECK(options.examples >= 0, "classification",
              "--examples: expected a number of examples, or 0 for all; found {}; change it.", options.examples);
  PRISM_CHECK(kHeads.contains(options.budget_heads), "classification",
              "--budget-heads: expected own, all, random or shuffled; found \"{}\"; choose one of them.",
              options.budget_heads);
  PRISM_CHECK(options.budget_gain == "own" || options.budget_gain == "mean", "classification",
              "--budget-gain: expected own or mean; found \"{}\"; choose one of them.", options.budget_gain);
  PRISM_CHECK(!options.changes_budgets() || layers_with_budgets(classifier->config()) > 0, "classification",
              "--budget-heads, --budget-gain: expected a model with head budgets; found one without; leave them out.");
}

/// Labels all examples of the loader.
std::optional<LabelledExamples> label(const Classifier& classifier, ExampleLoader& loader,
                                      const std::vector<BudgetChange>& changes, const LabelOptions& options,
                                      const std::function<void(int64_t)>& on_done) {
  const auto count = static_cast<size_t>(loader.size());
  LabelledExamples result;
  result.classes = classifier->config().classes;
  result.cut = loader.cut_examples();
  result.labels.resize(count);
  result.predicted.resize(count);
  result.nats.resize(count);
  BudgetRows budgets(loader.size());
  int64_t done = 0;
  for (int64_t n = 0; n < loader.batches_per_epoch(); ++n) {
    if (stop_signal() != 0) return std::nullopt;
    auto batch = loader.batch(n);
    const auto classified = classify(classifier, ExampleTensors(batch),
                                     {.seed = static_cast<uint64_t>(options.seed), .first_row = done}, changes);
    const double* log_p = classified.log_probability_BC.const_data_ptr<double>();
    for (int64_t b = 0; b < batch.rows; ++b) {
      const auto row = static_cast<size_t>(b), example = static_cast<size_t>(batch.examples[row]);
      result.labels[example] = static_cast<int32_t>(batch.labels[row]);
      result.predicted[example] = classified.predicted[row];
      result.nats[example] = -log_p[b * result.classes + batch.labels[row]];
    }
    budgets.add(classified.budgets, batch.examples);
    done += batch.rows;
    on_done(done);
  }
  result.budgets = std::move(budgets).take();
  return result;
}

}  // namespace

Classified classify(const Classifier& classifier, const ExampleTensors& batch, BudgetNoise noise,
                    std::vector<BudgetChange> changes) {
  const torch::NoGradGuard no_gradients;
  ForwardContext context = batch.context;
  Budgets budgets(classifier->config().budget_tau, noise);
  budgets.change(std::move(changes));
  if (layers_with_budgets(classifier->config()) > 0) context.budgets = &budgets;
  const auto hidden = classifier(batch.tokens_BT, context);
  const auto logits_BC = classifier->head.logits(hidden, context.lengths_B);
  const auto log_p = logits_BC.log_softmax(1).to(torch::kCPU, torch::kDouble).contiguous();
  const int64_t classes = log_p.size(1);
  std::vector<int32_t> predicted;
  for (int64_t b = 0; b < log_p.size(0); ++b) {
    const double* row = log_p.const_data_ptr<double>() + b * classes;
    predicted.push_back(static_cast<int32_t>(std::max_element(row, row + classes) - row));
  }
  return {log_p, predicted, budgets.decisions()};
}

std::optional<LabelledExamples> label_examples(const Classifier& classifier, const LabelledDataset& data,
                                               const LabelOptions& options,
                                               const std::function<void(int64_t, int64_t)>& on_progress) {
  check_options(options, classifier);
  ExampleLoader loader(
      data,
      {.context = classifier->config().context, .rows = options.batch, .first = options.examples, .shuffle = false});
  const bool needs_means = options.budget_heads == "random" || options.budget_gain == "mean";
  const int64_t passes = needs_means ? 2 : 1;
  const auto report_pass = [&](int64_t pass) {
    return [&, pass](int64_t done) {
      if (on_progress) on_progress(pass * loader.size() + done, passes * loader.size());
    };
  };
  std::vector<BudgetChange> changes(classifier->config().layers.size(), {.heads = kHeads.at(options.budget_heads)});
  if (needs_means) {
    const auto own = label(classifier, loader, {}, options, report_pass(0));
    if (!own) return std::nullopt;
    const auto gains = mean_shares(own->budgets, changes.size()), kept = mean_kept_shares(own->budgets, changes.size());
    for (size_t l = 0; l < changes.size(); ++l) {
      const auto heads = static_cast<double>(classifier->config().layers[l].heads);
      if (options.budget_heads == "random") changes[l].drawn_share = std::round(kept[l] * heads) / heads;
      if (options.budget_gain == "mean") changes[l].gain = gains[l];
    }
  }
  return label(classifier, loader, changes, options, report_pass(passes - 1));
}

ClassificationScores score(const LabelledExamples& labelled) {
  const auto classes = static_cast<size_t>(labelled.classes);
  const size_t count = labelled.labels.size();
  PRISM_ASSERT(count > 0 && labelled.predicted.size() == count, "classification", "{} labels, {} predicted", count,
               labelled.predicted.size());
  ClassificationScores scores;
  scores.examples = static_cast<int64_t>(count);
  scores.loss = mean_of(labelled.nats);
  scores.confusion.assign(classes, std::vector<int64_t>(classes));
  for (size_t i = 0; i < count; ++i)
    ++scores.confusion[static_cast<size_t>(labelled.labels[i])][static_cast<size_t>(labelled.predicted[i])];
  double correct = 0;
  std::vector<double> recalls, f1s;
  for (size_t c = 0; c < classes; ++c) {
    double of_class = 0, labelled_so = 0;
    for (size_t other = 0; other < classes; ++other) {
      of_class += static_cast<double>(scores.confusion[c][other]);
      labelled_so += static_cast<double>(scores.confusion[other][c]);
    }
    const auto right = static_cast<double>(scores.confusion[c][c]);
    correct += right;
    scores.by_class.push_back(
        {ratio(right, of_class), ratio(right, labelled_so), ratio(2 * right, of_class + labelled_so)});
    recalls.push_back(scores.by_class.back().recall);
    f1s.push_back(scores.by_class.back().f1);
  }
  scores.accuracy = correct / static_cast<double>(count);
  scores.balanced_accuracy = mean_of_finite(std::move(recalls));
  scores.macro_f1 = mean_of_finite(std::move(f1s));
  return scores;
}

std::vector<double> right_answers(const LabelledExamples& labelled) {
  std::vector<double> right;
  for (size_t i = 0; i < labelled.labels.size(); ++i)
    right.push_back(labelled.predicted[i] == labelled.labels[i] ? 1 : 0);
  return right;
}

}  // namespace prism
