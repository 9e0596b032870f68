// Attention entropy against a loop over single keys in float64, and closed-form cases.
#include "prism/analysis/attention/attention_entropy.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/core/message_of.h"
#include "tests/generation/tiny_model.h"
#include "tests/layers/weights.h"

namespace prism {
namespace {

/// The mean of - sum p ln p for one head over the queries of all sequences, query by query and key by key.
double plain_entropy(const AttentionInput& input, int64_t head) {
  const auto q = input.q_BTHD.to(torch::kDouble).contiguous(), k = input.kv.k_BGSD.to(torch::kDouble).contiguous();
  const auto q_BTHD = q.accessor<double, 4>(), k_BGSD = k.accessor<double, 4>();
  const int64_t group = head * k.size(1) / q.size(2), past = k.size(2) - q.size(1);
  double sum = 0;
  for (int64_t b = 0; b < q.size(0); ++b)
    for (int64_t t = 0; t < q.size(1); ++t) {
      std::vector<double> weights;
      double total = 0;
      for (int64_t s = 0; s <= t + past; ++s) {
        double score = 0;
        for (int64_t d = 0; d < q.size(3); ++d) score += q_BTHD[b][t][head][d] * k_BGSD[b][group][s][d];
        total += weights.emplace_back(std::exp(score / std::sqrt(static_cast<double>(q.size(3)))));
      }
      for (const double weight : weights) sum -= weight / total * std::log(weight / total);
    }
  return sum / static_cast<double>(q.size(0) * q.size(1));
}

/// Forwards every input to the probe and keeps the plain entropies of the same inputs.
struct EntropyChecker : Probe {
  explicit EntropyChecker(const std::vector<LayerConfig>& layers) : probe(layers) {}
  void observe_attention(size_t layer, const AttentionInput& input) override {
    probe.observe_attention(layer, input);
    plain.resize(layer + 1);
    for (int64_t head = 0; head < input.q_BTHD.size(2); ++head) plain[layer].push_back(plain_entropy(input, head));
  }
  AttentionEntropyProbe probe;
  std::vector<std::vector<double>> plain;
};

TEST(AttentionEntropy, EqualsThePlainSum) {
  const torch::NoGradGuard no_gradients;
  for (const auto type : {torch::kDouble, torch::kFloat}) {
    auto decoder = tiny_decoder();
    if (type == torch::kDouble) convert_weights(decoder->weights(), type);
    decoder->set_compute_type(type);
    EntropyChecker checker(decoder->config().layers);
    ForwardContext context;
    context.probe = &checker;
    torch::manual_seed(3);
    decoder(torch::randint(kTinyVocab, {2, 21}, torch::kLong), context);
    const auto found = checker.probe.result();
    ASSERT_EQ(found.size(), 3u);
    for (size_t l = 0; l < 3; ++l) {
      double mean = 0;
      for (size_t h = 0; h < found[l].head_entropies.size(); ++h) {
        EXPECT_NEAR(found[l].head_entropies[h], checker.plain[l][h], 1e-5 * checker.plain[l][h]) << l << " " << h;
        mean += checker.plain[l][h] / static_cast<double>(found[l].heads);
      }
      EXPECT_NEAR(found[l].entropy, mean, 1e-5 * mean);
    }
  }
}

TEST(AttentionEntropy, IsThatOfEvenAndOfOneHotAttention) {
  std::vector<LayerConfig> layers(1);
  layers[0].heads = 2;
  layers[0].kv_heads = 1;
  layers[0].head_dim = 4;
  AttentionInput input;
  input.q_BTHD = torch::zeros({1, 6, 2, 4});
  input.q_BTHD.select(2, 1).fill_(100);  // the second head's scores differ by hundreds
  input.kv.k_BGSD = torch::arange(6).view({1, 1, 6, 1}).expand({1, 1, 6, 4}).to(torch::kFloat).contiguous();
  input.kv.v_BGSE = torch::zeros({1, 1, 6, 4});
  AttentionEntropyProbe probe(layers);
  probe.observe_attention(0, input);
  const auto entropy = probe.result();
  EXPECT_NEAR(entropy[0].head_entropies[0], std::log(720.0) / 6, 1e-6);
  EXPECT_EQ(entropy[0].head_entropies[1], 0);
  EXPECT_REFUSED(AttentionEntropyProbe(layers).result(), "[attention_entropy] expected sequences");
  input.causality = Causality::full;
  AttentionEntropyProbe full(layers);
  full.observe_attention(0, input);
  EXPECT_NEAR(full.result()[0].head_entropies[0], std::log(6.0), 1e-6) << "every query sees all six keys";
}

}  // namespace
}  // namespace prism
