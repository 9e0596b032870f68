#include "prism/models/decoder.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "prism/layers/relu_mlp.h"
#include "prism/models/device.h"
#include "tests/core/message_of.h"
#include "tests/layers/weights.h"
#include "tests/models/configs.h"

namespace prism {
namespace {

TEST(Ladder, BeginsAsInTheText) {
  const auto std_of = [](const torch::Tensor& weight) { return weight.std().item<double>(); };
  auto full = Decoder(rung("4x1", 256, "none")), split = Decoder(rung("4x1", 0, "none"));
  full->initialise(1);
  split->initialise(1);
  // With 2^16 values or more the sample deviation has a relative error of at most 0.3%; with the 8,192 of positions
  // 0.8%.
  EXPECT_NEAR(std_of(full->embedding.weight.tensor()), 1, 0.01);
  EXPECT_NEAR(std_of(full->positions.weight.tensor()), 1, 0.03);
  for (const auto& decoder : {full, split}) {
    EXPECT_NEAR(std_of(decoder->blocks[0]->attention.qkv.weight.tensor()), 1.0 / 16, 0.01 / 16);
    EXPECT_NEAR(std_of(decoder->blocks[0]->attention.out.weight.tensor()), 1.0 / 16, 0.01 / 16);
    EXPECT_NEAR(std_of(decoder->head.weight().tensor()), 1.0 / 16, 0.01 / 16);
  }
  const auto& mlp = dynamic_cast<const ReluMlp&>(*full->blocks[0]->mlp);
  for (const auto& [layer, fan_in] : {std::pair{mlp.inner[0], 256.0}, {mlp.inner[1], 2048.0}, {mlp.down, 2048.0}}) {
    const double bound = 1 / std::sqrt(fan_in);
    EXPECT_LE(layer.weight.tensor().abs().max().item<double>(), bound);
    EXPECT_NEAR(std_of(layer.weight.tensor()), bound / std::sqrt(3.0), 0.01 * bound);
    EXPECT_LE(layer.bias.tensor().abs().max().item<double>(), bound);
    EXPECT_GT(layer.bias.tensor().abs().max().item<double>(), 0.9 * bound);
  }
}

Decoder drawn_decoder(const ModelConfig& config, torch::ScalarType type = torch::kFloat) {
  Decoder decoder(config);
  decoder->initialise(3);
  decoder->set_compute_type(type);
  return decoder;
}

torch::Tensor tokens(int64_t rows, int64_t count) {
  torch::manual_seed(5);
  return torch::randint(0, 50, {rows, count}, torch::kLong);
}

TEST(Decoder, StartsNearTheLossOfAUniformGuess) {
  auto decoder = drawn_decoder(config_of("2x1,4x2"));
  const auto text = tokens(2, 17);
  const auto loss =
      decoder->head.loss(decoder(text.narrow(1, 0, 16).contiguous(), ForwardContext{}), text.narrow(1, 1, 16));
  EXPECT_NEAR(loss.item<double>(), std::log(50.0), 0.1);
}

TEST(Decoder, InitialisesResidualProjectionsSmallerAndByNameAlone) {
  auto config = config_of("4x8", 256);
  auto decoder = drawn_decoder(config);
  // With 256 x 256 values the sample deviation has a relative error of 0.3%.
  EXPECT_NEAR(decoder->blocks[2]->attention.out.weight.tensor().std().item<double>(), 0.02 / 4, 0.02 / 4 * 0.02);
  EXPECT_NEAR(decoder->blocks[2]->attention.qkv.weight.tensor().std().item<double>(), 0.02, 0.02 * 0.02);
  auto other = drawn_decoder(config_of("1x4,4x4", 256));
  EXPECT_TRUE(
      torch::equal(decoder->blocks[0]->attention.qkv.weight.tensor(), other->blocks[0]->attention.qkv.weight.tensor()));
  EXPECT_FALSE(torch::equal(decoder->blocks[0]->attention.qkv.weight.tensor(),
                            decoder->blocks[1]->attention.qkv.weight.tensor()));
}

TEST(Decoder, GivesTheSameLogitsWithACacheAsWithout) {
  auto decoder = drawn_decoder(config_of("1x1,2x1,4x2"));
  torch::NoGradGuard no_gradients;
  const auto text = tokens(2, 12);
  const auto whole = decoder->head.logits(decoder(text, ForwardContext{}));
  KvCache cache(decoder->config().layers, {.sequences = 2, .positions = 12});
  ForwardContext context;
  context.cache = &cache;
  decoder(text.narrow(1, 0, 7).contiguous(), context);
  torch::Tensor last;
  for (int64_t t = 7; t < 12; ++t) last = decoder->head.logits(decoder(text.narrow(1, t, 1).contiguous(), context));
  EXPECT_TRUE(torch::allclose(last.squeeze(1), whole.select(1, 11), 1e-4, 1e-5));
}

TEST(Decoder, TokenLossesAverageToTheLossAndMatchTheLogits) {
  for (const bool tied : {true, false}) {
    auto config = config_of("2x1,4x2");
    config.tied = tied;
    auto decoder = drawn_decoder(config);
    torch::NoGradGuard no_gradients;
    const auto text = tokens(2, 17);
    const auto input = text.narrow(1, 0, 16).contiguous(), labels = text.narrow(1, 1, 16).contiguous();
    const auto hidden = decoder(input, ForwardContext{});
    const auto losses = decoder->head.token_losses(hidden, labels);
    const auto expected = at::cross_entropy_loss(decoder->head.logits(hidden).flatten(0, 1), labels.flatten());
    EXPECT_NEAR(losses.mean().item<double>(), expected.item<double>(), 1e-5);
    EXPECT_NEAR(decoder->head.loss(hidden, labels).item<double>(), expected.item<double>(), 1e-5);
  }
}

TEST(Ladder, KnowsPositionsByTheirVectorsAlone) {
  auto config = rung("2x1", 0, "rms", 16, 24, 50);
  auto decoder = Decoder(config);
  decoder->initialise(3);
  torch::NoGradGuard no_gradients;
  const auto text = tokens(1, 6);
  const auto plain = decoder->head.logits(decoder(text, ForwardContext{}));
  ForwardContext moved;
  moved.positions_BT = torch::tensor({{0, 1, 2, 3, 4, 7}}, torch::kLong);
  const auto last = decoder->head.logits(decoder(text, moved));
  EXPECT_TRUE(torch::allclose(last.narrow(1, 0, 5), plain.narrow(1, 0, 5)));
  EXPECT_FALSE(torch::allclose(last.select(1, 5), plain.select(1, 5), 1e-2, 1e-2));
  // Without positions the order of the keys does not matter.
  decoder->positions.weight.tensor().zero_();
  const auto order = torch::tensor({3, 0, 4, 1, 2, 5}, torch::kLong);
  const auto one = decoder->head.logits(decoder(text, ForwardContext{})).select(1, 5);
  const auto other = decoder->head.logits(decoder(text.index_select(1, order), ForwardContext{})).select(1, 5);
  EXPECT_TRUE(torch::allclose(one, other, 1e-4, 1e-4));
}

void expect_gradients_of_differences(Decoder decoder) {
  convert_weights(decoder->weights(), torch::kDouble);
  decoder->set_compute_type(torch::kDouble);
  const auto text = tokens(2, 9);
  const auto loss = [&] {
    return decoder->head.loss(decoder(text.narrow(1, 0, 8).contiguous(), ForwardContext{}), text.narrow(1, 1, 8));
  };
  loss().backward();
  torch::NoGradGuard no_gradients;
  for (const auto& entry : decoder->weights()) {
    auto values = entry.weight.tensor().view({-1});
    for (const int64_t i : {int64_t{0}, values.numel() / 2, values.numel() - 1}) {
      const double value = values[i].item<double>(), step = 1e-5;
      values[i] = value + step;
      const double above = loss().item<double>();
      values[i] = value - step;
      const double below = loss().item<double>();
      values[i] = value;
      EXPECT_NEAR(entry.weight.tensor().grad().view({-1})[i].item<double>(), (above - below) / (2 * step), 1e-7)
          << entry.name << " " << i;
    }
  }
}

/// Checks a few derivatives of the whole model against central differences, in float64.
TEST(Decoder, HasTheGradientsOfFiniteDifferences) {
  auto config = config_of("1x1,2x1");
  config.layers.back().kv_heads = 1;
  config.layers.back().qk_norm = true;
  expect_gradients_of_differences(drawn_decoder(config));
  for (const char* norm : {"rms", "none"}) {
    auto ladder = rung("1x2", 0, norm, 12, 20, 50);
    ladder.layers.front().output_projection = false;
    expect_gradients_of_differences(drawn_decoder(ladder));
  }
}

TEST(Decoder, InBfloat16FollowsFloat32) {
  auto config = config_of("1x1,2x1,4x2", 64);
  auto decoder = drawn_decoder(config);
  const auto text = tokens(4, 17);
  const auto input = text.narrow(1, 0, 16).contiguous(), labels = text.narrow(1, 1, 16).contiguous();
  const auto run = [&](torch::ScalarType type) {
    decoder->set_compute_type(type);
    clear_gradients(decoder->weights());
    const auto loss = decoder->head.loss(decoder(input, ForwardContext{}), labels);
    loss.backward();
    return std::pair{loss.item<double>(), decoder->blocks[1]->attention.qkv.weight.tensor().grad().clone()};
  };
  const auto [loss32, gradient32] = run(torch::kFloat);
  const auto [loss16, gradient16] = run(torch::kBFloat16);
  EXPECT_EQ(gradient16.scalar_type(), torch::kFloat);
  EXPECT_NEAR(loss16, loss32, 0.01);
  // Eight bits of mantissa and a few products: an error of a few per cent of the gradient's norm.
  EXPECT_LT((gradient16 - gradient32).norm().item<double>(), 0.05 * gradient32.norm().item<double>());
}

TEST(Decoder, HasTheSameGradientsWhenItComputesActivationsAgain) {
  auto decoder = drawn_decoder(config_of("1x1,2x2"));
  const auto text = tokens(2, 9);
  const auto gradients = [&](bool recomputes) {
    decoder->set_recompute(recomputes);
    clear_gradients(decoder->weights());
    for (int step = 0; step < 2; ++step)  // gradients add up
      decoder->head.loss(decoder(text.narrow(1, 0, 8).contiguous(), ForwardContext{}), text.narrow(1, 1, 8)).backward();
    std::vector<torch::Tensor> list;
    for (const auto& entry : decoder->weights()) list.push_back(entry.weight.tensor().grad().clone());
    return list;
  };
  for (const auto type : {torch::kFloat, torch::kBFloat16}) {
    decoder->set_compute_type(type);
    const auto kept = gradients(false), again = gradients(true);
    for (size_t i = 0; i < kept.size(); ++i) EXPECT_TRUE(torch::equal(kept[i], again[i])) << i;
  }
  decoder->set_recompute(true);
  torch::NoGradGuard no_gradients;
  EXPECT_FALSE(decoder(text, ForwardContext{}).requires_grad());
}

/// A block with an auxiliary loss that grows towards the end of training.
class PenalisedBlock : public Block {
 public:
  using Block::Block;
  Residual forward(const Residual& residual, const ForwardContext& context, torch::ScalarType type) const override {
    auto after = Block::forward(residual, context, type);
    if (context.auxiliary != nullptr)
      context.auxiliary->add(context.auxiliary->progress() * after.stream_BTD.square().mean());
    return after;
  }
};

/// A decoder of such blocks with seeded weights.
Decoder penalised_decoder() {
  const auto config = config_of("1x1,2x2");
  Decoder decoder(config);
  const auto rotary = std::make_shared<RotaryCache>();
  for (size_t i = 0; i < config.layers.size(); ++i)
    decoder->blocks[i] = std::make_shared<PenalisedBlock>(config, i, rotary);
  decoder->initialise(7);
  return decoder;
}

TEST(Auxiliary, CollectsWhatLayersAddToTheLossOnceAlsoWhereTheyAreRecomputed) {
  auto decoder = penalised_decoder();
  const auto text = tokens(2, 9);
  struct Result {
    double head = 0, added = 0;
    std::vector<torch::Tensor> gradients;
  };
  const auto run = [&](bool recomputes, std::optional<double> progress) {
    decoder->set_recompute(recomputes);
    clear_gradients(decoder->weights());
    Auxiliary auxiliary(progress.value_or(0));
    ForwardContext context;
    if (progress) context.auxiliary = &auxiliary;
    auto loss =
        decoder->head.loss(decoder(text.narrow(1, 0, 8).contiguous(), context), text.narrow(1, 1, 8).contiguous());
    Result result{loss.item<double>(), 0, {}};
    if (auxiliary.loss().defined()) {
      result.added = auxiliary.loss().item<double>();
      loss = loss + auxiliary.loss();
    }
    loss.backward();
    for (const auto& entry : decoder->weights()) result.gradients.push_back(entry.weight.tensor().grad().clone());
    return result;
  };
  const auto kept = run(false, 0.5), again = run(true, 0.5), later = run(true, 1.0), without = run(true, std::nullopt);
  EXPECT_GT(kept.added, 0);
  EXPECT_EQ(again.head, kept.head);
  EXPECT_EQ(again.added, kept.added);
  EXPECT_NEAR(later.added, 2 * kept.added, 1e-5 * kept.added);
  EXPECT_EQ(without.added, 0);
  bool any_differs = false;
  for (size_t i = 0; i < kept.gradients.size(); ++i) {
    EXPECT_TRUE(torch::equal(kept.gradients[i], again.gradients[i])) << i;
    any_differs |= !torch::allclose(kept.gradients[i], without.gradients[i], 1e-3, 1e-6);
  }
  EXPECT_TRUE(any_differs) << "the auxiliary terms have no gradient";
  // Recomputed layers without auxiliary loss do not change the loss.
  Auxiliary unused(0.5);
  ForwardContext context;
  context.auxiliary = &unused;
  auto plain = drawn_decoder(config_of("1x1,2x2"));
  plain->set_recompute(true);
  plain(text, context);
  EXPECT_EQ(unused.loss().item<double>(), 0);
}

/// Compares loss and gradients on the GPU and the CPU, with and without a mask. Skipped without a GPU.
TEST(Cuda, GivesTheLossAndGradientsOfTheCpu) {
  torch::Device device = torch::kCPU;
  try {
    device = open_device("cuda");
  } catch (const FailedError& error) {
    GTEST_SKIP() << error.what();
  }
  auto config = config_of("1x1,2x1,4x1", 64);
  config.layers.back().kv_heads = 2;
  config.layers.front().qk_norm = true;
  auto decoder = drawn_decoder(config);
  const auto text = tokens(2, 17);
  const auto run = [&](bool documents) {
    ForwardContext context;
    if (documents) {
      context.documents_BT = (torch::arange(16) / 5).to(torch::kInt).repeat({2, 1});
      context.positions_BT = positions_in_documents(context.documents_BT);
    }
    clear_gradients(decoder->weights());
    const auto loss = decoder->head.loss(decoder(text.narrow(1, 0, 16).contiguous(), context), text.narrow(1, 1, 16));
    loss.backward();
    std::vector<torch::Tensor> results = {loss.detach().cpu()};
    for (const auto& entry : decoder->weights()) results.push_back(entry.weight.tensor().grad().cpu().clone());
    return results;
  };
  for (const bool documents : {false, true}) {
    move_weights(decoder->weights(), torch::kCPU);
    const auto expected = run(documents);
    move_weights(decoder->weights(), device);
    const auto found = run(documents);
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_LT((found[i] - expected[i]).norm().item<double>(), 1e-3 * expected[i].norm().item<double>() + 1e-6) << i;
  }
}

TEST(Decoder, KeepsDocumentsApart) {
  auto decoder = drawn_decoder(config_of("1x1,4x2"));
  torch::NoGradGuard no_gradients;
  const auto text = tokens(1, 10);
  ForwardContext context;
  context.documents_BT = torch::tensor({{0, 0, 0, 0, 1, 1, 1, 1, 1, 1}}, torch::kInt);
  context.positions_BT = positions_in_documents(context.documents_BT);
  const auto packed = decoder->head.logits(decoder(text, context));
  const auto alone = decoder->head.logits(decoder(text.narrow(1, 4, 6).contiguous(), ForwardContext{}));
  EXPECT_TRUE(torch::allclose(packed.narrow(1, 4, 6), alone, 1e-4, 1e-5));
}

TEST(Decoder, RejectsForeignTokensAndTextBeyondTheContext) {
  auto decoder = drawn_decoder(config_of("4x1"));
  EXPECT_NE(message_of([&] {
              decoder(torch::full({1, 2}, 50, torch::kLong), ForwardContext{});
            }).find("from 0 to 49"),
            std::string::npos);
  EXPECT_NE(message_of([&] { decoder(tokens(1, 33), ForwardContext{}); }).find("at most 32 positions"),
            std::string::npos);
}

}  // namespace
}  // namespace prism
