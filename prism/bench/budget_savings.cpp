#include "prism/bench/budget_savings.h"

#include <algorithm>
#include <vector>

#include "prism/attention/budget/budgets.h"
#include "prism/bench/measure.h"
#include "prism/core/error.h"
#include "prism/data/labelled/example_loader.h"
#include "prism/evaluation/classification.h"
#include "prism/models/cost.h"
#include "prism/models/device.h"

namespace prism {
namespace {

Classifier without_budgets(const Classifier& classifier) {
  auto config = classifier->config();
  for (auto& layer : config.layers) layer.budget = {};
  Classifier plain(config);
  plain->initialise(/*seed=*/1);
  plain->set_word_starts(classifier->word_starts());
  plain->set_compute_type(classifier->compute_type());
  move_weights(plain->weights(), classifier->device());
  return plain;
}

/// Number of key/value heads that each sequence computes, float64 [B].
torch::Tensor computed_groups(const torch::Tensor& kept_BH, const LayerConfig& layer) {
  return kept_BH.view({kept_BH.size(0), layer.kv_heads, -1}).any(2).sum(1).to(torch::kCPU, torch::kDouble);
}

/// Adds the FLOPs of a batch's texts. @param budgets  what was decided; empty: every head is computed.
void add_flops(InferenceCost& cost, const ModelConfig& config, const ExampleBatch& batch,
               const std::vector<BudgetDecision>& budgets) {
  const AttentionOptions options{.d_model = config.d_model, .is_causal = config.attention == "causal"};
  auto one_token = config;
  one_token.context = 1;
  double rest_per_token = static_cast<double>(model_cost(one_token).flops_per_token);
  for (const auto& layer : config.layers)
    rest_per_token -= attention_part_flops(options, layer, 1, static_cast<double>(layer.kv_heads));
  for (int64_t b = 0; b < batch.rows; ++b) {
    const int64_t tokens = batch.lengths[static_cast<size_t>(b)];
    double attention = 0;
    for (size_t l = 0; l < config.layers.size(); ++l) {
      const auto& layer = config.layers[l];
      const bool decides = l < budgets.size() && budgets[l].share_B.defined();
      const double groups = decides ? computed_groups(budgets[l].kept_BH[b].unsqueeze(0), layer).item<double>()
                                    : static_cast<double>(layer.kv_heads);
      attention += attention_part_flops(options, layer, tokens, groups);
      if (decides) attention += budget_network_flops(layer, config.d_model);
    }
    cost.attention_flops += attention;
    const double head = 2 * static_cast<double>(config.d_model * config.classes);  // once per text
    cost.model_flops += attention + rest_per_token * static_cast<double>(tokens) + head;
  }
}

/// Batches spread evenly over all lengths, the last of which has the longest texts.
std::vector<ExampleBatch> choose_batches(const Classifier& classifier, const LabelledDataset& data,
                                         const SavingsOptions& options) {
  ExampleLoader loader(
      data,
      {.context = classifier->config().context, .rows = options.batch, .first = options.examples, .shuffle = false});
  const int64_t all = loader.batches_per_epoch(), count = std::min(options.most, all);
  std::vector<ExampleBatch> batches;
  for (int64_t i = 1; i <= count; ++i) batches.push_back(loader.batch(i * all / count - 1));
  return batches;
}

}  // namespace

BudgetSavings bench_budget_savings(const Classifier& classifier, const LabelledDataset& data,
                                   const SavingsOptions& options) {
  const auto& config = classifier->config();
  PRISM_CHECK(layers_with_budgets(config) > 0, "bench",
              "expected a classifier with head budgets; found none in its layers; name another model.");
  PRISM_CHECK(options.batch >= 1 && options.batch <= 65536 && options.most >= 1 && options.rounds >= 1, "bench",
              "expected a batch of 1 to 65536 texts and at least one round; found {} and {}; change them.",
              options.batch, options.rounds);
  const torch::NoGradGuard no_gradients;
  const auto plain = without_budgets(classifier);
  auto batches = choose_batches(classifier, data, options);
  BudgetSavings savings;
  savings.batch = options.batch;
  double tokens = 0;
  double share = 0, kept = 0;
  for (auto& batch : batches) {
    const auto budgets = classify(classifier, ExampleTensors(batch)).budgets;
    add_flops(savings.with, config, batch, budgets);
    for (const auto& [share_B, probability_BH, kept_BH] : budgets) {
      if (!share_B.defined()) continue;
      share += share_B.sum().item<double>();
      kept += kept_BH.to(torch::kDouble).mean(1).sum().item<double>();
    }
    add_flops(savings.without, plain->config(), batch, {});
    savings.texts += batch.rows;
    for (const int32_t length : batch.lengths) tokens += length;
  }
  const auto run_all = [&](const Classifier& model) {
    for (auto& batch : batches) classify(model, ExampleTensors(batch));
  };
  const auto times = medians_in_turn({[&] { run_all(classifier); }, [&] { run_all(plain); }}, options.rounds);
  const auto texts = static_cast<double>(savings.texts);
  savings.tokens = tokens / texts;
  const double decisions = texts * static_cast<double>(layers_with_budgets(config));
  savings.share = share / decisions;
  savings.kept_share = kept / decisions;
  const auto finish = [&](InferenceCost& cost, const Classifier& model, double ms) {
    cost.parameters = model_cost(*model).parameters;
    cost.ms = ms / texts;
    cost.attention_flops /= texts;
    cost.model_flops /= texts;
    cost.memory_bytes = peak_tensor_bytes([&] { classify(model, ExampleTensors(batches.back())); });
  };
  finish(savings.with, classifier, times[0]);
  finish(savings.without, plain, times[1]);
  return savings;
}

}  // namespace prism
