#include "prism/analysis/attention/attention_maps.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cmath>

namespace prism {
namespace {

AttentionInput random_input(Causality causality) {
  torch::manual_seed(1);
  AttentionInput input;
  input.q_BTHD = torch::randn({1, 5, 4, 8});
  input.kv = {torch::randn({1, 2, 5, 8}), torch::randn({1, 2, 5, 8}), {}};
  input.causality = causality;
  return input;
}

/// The weights of a head by their definition.
torch::Tensor weights_of(const AttentionInput& input, int64_t head) {
  const auto q_TD = input.q_BTHD[0].select(1, head).to(torch::kDouble);
  const auto k_SD = input.kv.k_BGSD[0][head / 2].to(torch::kDouble);
  auto scores = at::matmul(q_TD, k_SD.t()) / std::sqrt(8.0);
  if (input.causality == Causality::causal)
    scores = scores.masked_fill(torch::ones({5, 5}, torch::kBool).triu(1), -INFINITY);
  return at::softmax(scores, 1);
}

TEST(AttentionMaps, AreTheWeightsOfTheChosenHeads) {
  for (const auto causality : {Causality::causal, Causality::full}) {
    const auto input = random_input(causality);
    AttentionMapProbe probe([](size_t layer, int64_t heads) {
      EXPECT_EQ(heads, 4);
      return layer == 2 ? std::vector<int64_t>{3, 0} : std::vector<int64_t>();
    });
    for (size_t layer = 0; layer < 4; ++layer) probe.observe_attention(layer, input);
    ASSERT_EQ(probe.maps().size(), 2u);
    for (const auto& map : probe.maps()) {
      EXPECT_EQ(map.layer, 2);
      EXPECT_TRUE(at::allclose(map.weights_TS, weights_of(input, map.head), 1e-5, 1e-6)) << map.head;
      const auto rows = rows_of(map);
      ASSERT_EQ(rows.size(), 5u);
      EXPECT_EQ(rows[1].size(), causality == Causality::causal ? 2u : 5u);
    }
    EXPECT_EQ(probe.maps()[0].head, 3) << "in the order they were chosen in";
  }
}

}  // namespace
}  // namespace prism
