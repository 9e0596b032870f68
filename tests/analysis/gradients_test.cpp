#include "prism/analysis/gradients.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/generation/tiny_model.h"

namespace prism {
namespace {

torch::Tensor loss_of(Decoder& decoder, const torch::Tensor& tokens_BT) {
  const auto inputs = tokens_BT.slice(1, 0, -1).contiguous(), labels = tokens_BT.slice(1, 1).contiguous();
  return decoder->head.loss(decoder(inputs, ForwardContext()), labels);
}

TEST(GradientSum, OfBatchesIsThatOfTheMeanLossOverAllLabels) {
  auto decoder = tiny_decoder();
  torch::manual_seed(1);
  const auto tokens = torch::randint(kTinyVocab, {5, 11}, torch::kLong);
  GradientSum whole(decoder->weights());
  whole.add(loss_of(decoder, tokens), 50);
  const auto expected = whole.norms();
  GradientSum parts(decoder->weights());  // clears the gradients
  parts.add(loss_of(decoder, tokens.narrow(0, 0, 1)), 10);
  parts.add(loss_of(decoder, tokens.narrow(0, 1, 4)), 40);
  const auto found = parts.norms();
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].name, expected[i].name);
    EXPECT_GT(expected[i].gradient, 0) << found[i].name;
    // The sums are in float32, in another order.
    EXPECT_NEAR(found[i].gradient, expected[i].gradient, 1e-4 * expected[i].gradient) << found[i].name;
  }
}

TEST(GradientSum, NamesParametersAndTheirLayers) {
  auto decoder = tiny_decoder();
  GradientSum sum(decoder->weights());
  sum.add(loss_of(decoder, torch::tensor({{1, 2, 3}})), 2);
  std::map<std::string, ParameterGradient> by_name;
  for (const auto& parameter : sum.norms()) by_name[parameter.name] = parameter;
  const auto& embedding = by_name.at("model.embed_tokens.weight");
  EXPECT_FALSE(fields_to_json(embedding).contains("layer"));
  EXPECT_NEAR(embedding.weight, decoder->embedding.weight.tensor().norm().item<double>(), 1e-3 * embedding.weight);
  const auto& keys = by_name.at("model.layers.2.self_attn.k_proj.weight");
  EXPECT_EQ(keys.layer, 2);
  EXPECT_EQ(keys.part, "self_attn.k_proj");
}

}  // namespace
}  // namespace prism
