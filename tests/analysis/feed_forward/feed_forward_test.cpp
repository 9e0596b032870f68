// Stable ranks, gates, and layers that share projections.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <utility>
#include <vector>

#include "prism/analysis/feed_forward/gates.h"
#include "prism/analysis/feed_forward/stable_ranks.h"
#include "prism/analysis/feed_forward/twins.h"
#include "prism/layers/glu_mlp.h"
#include "tests/generation/tiny_model.h"

namespace prism {
namespace {

Decoder mirrored(const std::string& kind = "g2lu", const std::string& schedule = "4x5", int64_t middle = 1) {
  ModelConfig config;
  config.vocab_size = 50;
  config.d_model = 24;
  config.context = 32;
  config.schedule = schedule;
  config.ffn_width = 20;
  config.mirror_middle = middle;
  config.init_std = 0.3;
  config.each.ffn.kind = kind;
  return make_decoder(config);
}

torch::Tensor tokens() {
  return torch::arange(60).remainder(50).view({2, 30});
}

TEST(StableRanks, AreThoseOfTheSingularValues) {
  torch::manual_seed(1);
  const auto u = std::get<0>(at::linalg_qr(torch::randn({6, 4}, torch::kDouble)));
  const auto v = std::get<0>(at::linalg_qr(torch::randn({4, 4}, torch::kDouble)));
  const auto matrix = at::matmul(u * torch::tensor({4.0, 2.0, 1.0, 0.0}, torch::kDouble), v);
  const auto [rank, norm] = stable_rank(matrix);
  EXPECT_NEAR(rank, 21.0 / 16, 1e-12);
  EXPECT_NEAR(norm, 4, 1e-12);
  EXPECT_NEAR(stable_rank(matrix.t()).first, 21.0 / 16, 1e-12);
  EXPECT_NEAR(stable_rank(torch::eye(5)).first, 5, 1e-12);
  EXPECT_EQ(stable_rank(torch::zeros({3, 5})), (std::pair{0.0, 0.0}));
}

TEST(StableRanks, AreShownInEveryLayerThatUsesTheMatrix) {
  const torch::NoGradGuard no_gradients;
  const auto found = measure_stable_ranks(mirrored()->weights());
  ASSERT_EQ(found.size(), 5U * 4);
  for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].layer, static_cast<int64_t>(i / 4)) << i;
  const auto at = [&](int64_t layer, const std::string& part) {
    for (const auto& matrix : found)
      if (matrix.layer == layer && matrix.part == part) return matrix;
    return StableRank();
  };
  EXPECT_EQ(at(4, "mlp.up_proj").owner, 0);
  EXPECT_EQ(at(4, "mlp.up_proj").stable_rank, at(0, "mlp.up_proj").stable_rank);
  EXPECT_FALSE(at(4, "mlp.gate_proj").owner);
  EXPECT_NE(at(4, "mlp.gate_proj").stable_rank, at(0, "mlp.gate_proj").stable_rank);
  EXPECT_EQ(at(2, "mlp.down_proj").rows, 24);
  EXPECT_EQ(at(2, "mlp.down_proj").columns, 20);
}

TEST(Bands, AreStretchesAboveHalfTheLargestMagnitude) {
  const auto values =
      torch::tensor({{0.0, 1.0, 0.0, -3.0}, {2.0, 1.0, 0.0, 1.0}, {0.9, 1.0, 0.0, 2.0}, {1.5, 1.0, 0.0, 0.0}});
  const auto bands = find_bands(values);
  EXPECT_TRUE(torch::equal(bands.number_U, torch::tensor({2.0, 1.0, 0.0, 2.0}, torch::kDouble)));
  EXPECT_TRUE(torch::equal(bands.width_U, torch::tensor({0.5, 1.0, 0.0, 0.5}, torch::kDouble)));
}

TEST(Bands, OfASingleGateOpenOnceWhereItIsHalfOpen) {
  const torch::NoGradGuard no_gradients;
  GluMlp mlp(1, FfnConfig{.kind = "swiglu", .width = 1});
  mlp.gates.weight.tensor().fill_(1);
  // silu(5.04) is half of silu(10), so the gate is open on 49.6% of the line.
  const auto bands = bands_between(mlp, torch::zeros({1}), torch::full({1}, 10.0), 1001);
  EXPECT_EQ(bands.number_U.item<double>(), 1);
  EXPECT_NEAR(bands.width_U.item<double>(), 0.496, 0.002);
}

TEST(Gates, AreTheFactorsOfTheUnits) {
  const torch::NoGradGuard no_gradients;
  for (const std::string kind : {"swiglu", "g2lu"})
    for (const bool shares : {false, true}) {
      GluMlp mlp(6, FfnConfig{.kind = kind, .width = 10}, shares);
      for (const auto& entry : weights_of(mlp)) entry.weight.tensor().normal_();
      const auto x = torch::randn({3, 6});
      std::vector<torch::Tensor> hidden;
      mlp.forward(x, &hidden);
      const auto up =
          shares ? mlp.up.weight.tensor() : mlp.gates.weight.tensor().narrow(0, kind == "g2lu" ? 20 : 10, 10);
      EXPECT_TRUE(torch::allclose(mlp.gate(x) * at::matmul(x, up.t()), hidden.front(), 1e-4, 1e-5)) << kind;
    }
  EXPECT_FALSE(mirrored("relu")->blocks[0]->mlp->gate(torch::randn({3, 24})).defined());
}

TEST(Gates, AreCountedIfTheyAreClosed) {
  const torch::NoGradGuard no_gradients;
  const auto decoder = mirrored("swiglu");
  // Half of the units of layer 2 have no gate.
  auto& mlp = dynamic_cast<GluMlp&>(*decoder->blocks[2]->mlp);
  mlp.gates.weight.tensor().narrow(0, 0, 10).zero_();
  GateProbe probe(*decoder, {.pairs = 8, .points = 65, .seed = 1});
  ForwardContext context;
  context.probe = &probe;
  decoder(tokens(), context);
  probe.count();
  decoder(tokens(), context);
  const auto found = probe.result();
  ASSERT_EQ(found.size(), 5U);
  EXPECT_GE(found[2].closed_share, 0.5);
  EXPECT_LT(found[2].closed_share, 0.6);
  EXPECT_LT(found[1].closed_share, 0.2);
  for (const auto& layer : found) {
    EXPECT_GT(layer.gate_rms, 0);
    EXPECT_GT(layer.bands, 0.4);
    EXPECT_GT(layer.band_width, 0);
    EXPECT_LE(layer.band_width, 1);
  }
  const auto plain = mirrored("relu");
  GateProbe nothing(*plain);
  context.probe = &nothing;
  plain(tokens(), context);
  EXPECT_TRUE(nothing.result().empty());
}

TEST(KernelAlignments, AreOneForRotationsAndSmallForNoise) {
  torch::manual_seed(2);
  const auto x = torch::randn({500, 6}) + 3, noise = torch::randn({500, 4});
  const auto rotation = std::get<0>(at::linalg_qr(torch::randn({6, 6})));
  const auto aligned = [](const torch::Tensor& a, const torch::Tensor& b) {
    KernelAlignment alignment;
    for (const int64_t first : {0, 200})
      alignment.add(a.narrow(0, first, first == 0 ? 200 : 300), b.narrow(0, first, first == 0 ? 200 : 300));
    return alignment.value();
  };
  EXPECT_NEAR(aligned(x, 5 * at::matmul(x, rotation) - 2), 1, 1e-5);
  EXPECT_LT(aligned(x, noise), 0.05);
  // Against the definition over kernels of tokens.
  const auto y = at::matmul(x, torch::randn({6, 4})).relu();
  const auto centred = [](const torch::Tensor& a) { return (a - a.mean(0, true)).to(torch::kDouble); };
  const auto k = at::matmul(centred(x), centred(x).t()), l = at::matmul(centred(y), centred(y).t());
  EXPECT_NEAR(aligned(x, y), ((k * l).sum() / (k.norm() * l.norm())).item<double>(), 1e-6);
  EXPECT_TRUE(std::isnan(KernelAlignment().value()));
}

TEST(Twins, AreComparedWithTheirOwners) {
  const torch::NoGradGuard no_gradients;
  const auto decoder = mirrored();
  TwinProbe probe(decoder->config().layers);
  ForwardContext context;
  context.probe = &probe;
  for (int pass = 0; pass < 2; ++pass) decoder(tokens(), context);
  const auto found = probe.result();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].layer, 3);
  EXPECT_EQ(found[0].owner, 1);
  EXPECT_EQ(found[1].owner, 0);
  for (const auto& pair : found) {
    EXPECT_GT(pair.cka, 0);
    EXPECT_LT(pair.cka, 1);
  }
}

TEST(Twins, ArePermutedAndPutBack) {
  const torch::NoGradGuard no_gradients;
  const auto decoder = mirrored("g2lu", "4x7");
  const auto before = decoder(tokens(), {});
  const auto loss = [&] { return decoder->head.loss(decoder(tokens(), {}), tokens().roll(-1, 1)).item<double>(); };
  const auto own = loss();
  const auto found = permute_twins(*decoder, 4, 1, loss);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->loss, own);
  ASSERT_EQ(found->permuted_losses.size(), 2U) << "three owners have two cycles";
  for (const double permuted : found->permuted_losses) EXPECT_NE(permuted, own);
  EXPECT_TRUE(torch::equal(decoder(tokens(), {}), before));
  EXPECT_FALSE(permute_twins(*mirrored("g2lu", "4x3"), 4, 1, [] { return 0.0; })) << "one pair";
  EXPECT_THROW(permute_twins(*decoder, 4, 1, []() -> double { throw std::runtime_error("stopped"); }),
               std::runtime_error);
  EXPECT_TRUE(torch::equal(decoder(tokens(), {}), before));
}

TEST(Twins, AndGatesLeaveOutPadding) {
  const torch::NoGradGuard no_gradients;
  const auto decoder = mirrored();
  const auto measured = [&](const torch::Tensor& tokens_BT, const torch::Tensor& lengths_B) {
    TwinProbe twins(decoder->config().layers);
    GateProbe gates(*decoder);
    Probes both({&twins, &gates});
    ForwardContext context;
    context.probe = &both;
    context.lengths_B = lengths_B;
    decoder(tokens_BT, context);
    return std::pair{twins.result()[0].cka, gates.result()[0].gate_rms};
  };
  const auto one = tokens().narrow(0, 0, 1);
  const auto [cka, rms] = measured(one, {});
  const auto [padded_cka, padded_rms] =
      measured(at::cat({one, torch::zeros({1, 2}, torch::kLong)}, 1), torch::full({1}, 30, torch::kInt));
  EXPECT_NEAR(padded_cka, cka, 1e-5);
  EXPECT_NEAR(padded_rms, rms, 1e-6);
}

}  // namespace
}  // namespace prism
