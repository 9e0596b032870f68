#include "prism/analysis/capture_probe.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "prism/attention/rotary.h"
#include "prism/kernels/rotary_pairs.h"
#include "tests/generation/tiny_model.h"

namespace prism {
namespace {

/// Keeps what the probe should copy.
struct CaptureChecker : Probe {
  explicit CaptureChecker(CaptureProbe& made) : probe(made) {}
  void observe_residual(size_t layer, const torch::Tensor& stream_BTD) override {
    probe.observe_residual(layer, stream_BTD);
    residuals.push_back(stream_BTD.clone());
  }
  void observe_attention(size_t layer, const AttentionInput& input) override {
    probe.observe_attention(layer, input);
    queries.push_back(input.q_BTHD.clone());
    keys.push_back(input.kv.k_BGSD.clone());
  }

  CaptureProbe& probe;
  std::vector<torch::Tensor> residuals, queries, keys;
};

TEST(CaptureProbe, CopiesTheChosenLayers) {
  Decoder decoder = tiny_decoder();
  const auto& layers = decoder->config().layers;
  CaptureProbe probe({1}, layers);
  CaptureChecker checker(probe);
  ForwardContext context;
  context.probe = &checker;
  decoder(torch::arange(12).view({1, 12}), context);
  ASSERT_EQ(probe.captured().size(), 1u);
  const auto& tensors = probe.captured().at(1);
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) {
    names.push_back(name);
    EXPECT_TRUE(tensor.is_contiguous()) << name;
  }
  ASSERT_EQ(names, (std::vector<std::string>{"residual", "q", "k", "v", "inverse_frequencies"}));
  EXPECT_TRUE(torch::equal(tensors[0].tensor, checker.residuals[1]));
  EXPECT_TRUE(torch::equal(tensors[1].tensor.transpose(1, 2), checker.queries[1]));
  EXPECT_TRUE(torch::equal(tensors[2].tensor, checker.keys[1]));
  const auto angles = rotary_pairs(layers[1].rotary, layers[1].head_dim).angles;
  EXPECT_EQ(tensors[4].tensor.numel(), static_cast<int64_t>(angles.size()));
}

}  // namespace
}  // namespace prism
