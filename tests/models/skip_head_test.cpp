// The head that predicts several tokens ahead.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "prism/models/batch.h"
#include "prism/models/cost.h"
#include "prism/models/decoder.h"
#include "tests/core/message_of.h"
#include "tests/layers/weights.h"
#include "tests/models/configs.h"

namespace prism {
namespace {

Decoder decoder_with(int64_t skip, torch::ScalarType type = torch::kFloat) {
  auto config = config_of("2x2", 16, 11, 24);
  config.skip = skip;
  complete(config);
  Decoder decoder(config);
  convert_weights(decoder->weights(), type);
  decoder->set_compute_type(type);
  decoder->initialise(3);
  return decoder;
}

TEST(SkipLabels, AreThoseOfLaterPositionsInTheWindowAndTheDocument) {
  Batch batch{
      .rows = 2, .context = 4, .tokens = {1, 2, 3, 4, 5, 6, 7, 8}, .labels = {2, 3, 4, 5, 6, 7, 8, 9}, .documents = {}};
  const auto ahead = [&](int64_t skip) {
    const auto labels = BatchTensors(batch).labels_ahead(skip).contiguous();
    return std::vector<int64_t>(labels.const_data_ptr<int64_t>(), labels.const_data_ptr<int64_t>() + labels.numel());
  };
  using Labels = std::vector<int64_t>;
  EXPECT_EQ(ahead(1), batch.labels);
  EXPECT_EQ(ahead(3), (Labels{4, 5, -1, -1, 8, 9, -1, -1}));
  EXPECT_EQ(ahead(4), (Labels{5, -1, -1, -1, 9, -1, -1, -1}));
  EXPECT_EQ(ahead(5), Labels(8, -1));
  batch.documents = {0, 0, 1, 1, 0, 1, 1, 2};
  EXPECT_EQ(ahead(1), batch.labels);
  EXPECT_EQ(ahead(2), (Labels{3, -1, 5, -1, -1, 8, -1, -1}));
}

TEST(SkipLabels, LeaveOutWhatThePromptDoesNotPredict) {
  Batch batch{.rows = 1, .context = 5, .tokens = {1, 2, 3, 4, 5}, .labels = {2, 3, 4, 5, 6}, .documents = {}};
  BatchTensors tensors(batch);
  tensors.set_prompts(torch::full({1}, 3, torch::kInt));
  const auto labels = tensors.labels_ahead(2).contiguous();
  EXPECT_TRUE(torch::equal(labels, torch::tensor({{int64_t{-1}, int64_t{4}, int64_t{5}, int64_t{6}, int64_t{-1}}})));
}

TEST(SkipHead, IsAWeightOfTrainingAloneThatChangesNothingElse) {
  const auto plain = decoder_with(0), skipping = decoder_with(2);
  EXPECT_EQ(skipping->weights().size(), plain->weights().size() + 1);
  EXPECT_EQ(skipping->weights().back().tensors.at(0).name, "skip_head.weight");
  const auto with = model_cost(*skipping), without = model_cost(*plain);
  EXPECT_EQ(with.parameters, without.parameters);
  EXPECT_EQ(with.flops_per_token, without.flops_per_token);
  EXPECT_EQ(inference_parameters(skipping->weights()), parameter_count(plain->weights()));
  EXPECT_EQ(parameter_count(skipping->weights()), parameter_count(plain->weights()) + 11 * 16);
  const auto tokens = torch::randint(0, 11, {2, 9}, torch::kLong);
  EXPECT_TRUE(torch::equal(skipping(tokens, ForwardContext{}), plain(tokens, ForwardContext{})));
}

TEST(SkipHead, HasTheGradientOfFiniteDifferences) {
  auto decoder = decoder_with(3, torch::kDouble);
  torch::manual_seed(5);
  Batch batch{.rows = 2, .context = 6, .tokens = {}, .labels = {}, .documents = {0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0}};
  for (int64_t i = 0; i < 12; ++i) batch.tokens.push_back((7 * i + 3) % 11);
  for (int64_t i = 0; i < 12; ++i) batch.labels.push_back((7 * i + 10) % 11);
  const auto loss = [&] {
    BatchTensors tensors(batch);
    const auto hidden = decoder(tensors.tokens_BT, tensors.context);
    return decoder->head.loss(hidden, tensors.labels_BT) +
           0.1 * decoder->skip_head->loss(hidden, tensors.labels_ahead(3));
  };
  expect_weight_gradients(decoder->weights(), {"skip_head.weight", "blocks_1.mlp.down.weight", "embedding.weight"},
                          loss);
}

TEST(SkipHead, RefusesDistancesOutOfRange) {
  auto config = config_of("2x2", 16, 11, 24);
  config.skip = 33;
  EXPECT_REFUSED(complete(config), "model.skip: expected 0 to 32, the context; found 33");
  config.skip = -1;
  EXPECT_REFUSED(complete(config), "found -1");
  config.skip = 1;
  config.classes = 2;
  EXPECT_REFUSED(complete(config), "model.skip: expected 0 in a classifier");
}

}  // namespace
}  // namespace prism
