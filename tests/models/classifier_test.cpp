// Encoders and classifiers: full attention, post-norm, LayerNorm, sinusoidal positions and the classification head.
#include "prism/models/classifier.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "prism/core/error.h"
#include "prism/models/decoder.h"
#include "tests/core/message_of.h"
#include "tests/layers/weights.h"

namespace prism {
namespace {

/// An encoder as in arXiv 2604.22583: post-norm, LayerNorm, ReLU, biases everywhere, no final norm.
ModelConfig encoder_config(const std::string& schedule, int64_t d_model, int64_t width) {
  ModelConfig config;
  config.vocab_size = 50;
  config.d_model = d_model;
  config.context = 32;
  config.classes = 3;
  config.attention = "full";
  config.sinusoidal_positions = true;
  config.final_norm = false;
  config.schedule = schedule;
  config.ffn_width = width;
  config.each.rotary.kind = "none";
  config.each.norm = "layer";
  config.each.norm_place = "post";
  config.each.qkv_bias = config.each.output_bias = config.each.ffn.bias = true;
  config.each.ffn.kind = "relu";
  config.initialisation = "ladder";
  expand_shorthand(config);
  complete(config);
  return config;
}

/// An encoder whose biases are not zero, so that each of them matters.
Classifier drawn_encoder(const ModelConfig& config, torch::ScalarType type = torch::kFloat) {
  Classifier classifier(config);
  classifier->initialise(3);
  classifier->set_compute_type(type);
  torch::NoGradGuard no_gradients;
  torch::manual_seed(11);
  for (const auto& entry : classifier->weights())
    if (entry.traits.role == WeightRole::bias) entry.weight.tensor().normal_(0, 0.3);
  return classifier;
}

torch::Tensor random_tokens(int64_t rows, int64_t count) {
  torch::manual_seed(5);
  return torch::randint(0, 50, {rows, count}, torch::kLong);
}

TEST(Classifier, HasTheParametersOfThePaper) {
  // arXiv 2604.22583, section V-A: 197.58 MB for L 4, H 8, D 768; the vocabulary of 30,522 and the width of 3,072 are
  // inferred from it.
  auto config = encoder_config("8x4", 768, 3072);
  config.vocab_size = 30522;
  const auto cost = model_cost(config);
  EXPECT_EQ(cost.parameters, 51'794'691);
  EXPECT_NEAR(static_cast<double>(cost.parameters) * 4 / (1 << 20), 197.58, 0.005);
  EXPECT_EQ(cost.kv_bytes_per_token, 0);
  EXPECT_EQ(cost.outside.back().name, "head");
  EXPECT_EQ(cost.outside.back().parameters, 3 * 768 + 3);
}

TEST(Classifier, CountsFullAttentionTwice) {
  auto config = encoder_config("2x2", 24, 48);
  const auto full = model_cost(config);
  config.attention = "causal";
  const auto causal = model_cost(config);
  // 4 H D per key: 32 keys, or 16.5 on average.
  EXPECT_EQ(full.layers[0].flops_per_token - causal.layers[0].flops_per_token, 4 * 24 * 32 - 2 * 24 * 33);
}

/// The encoder in elementary operations: a loop over layers as in arXiv 1706.03762.
torch::Tensor plain_encoder(const Classifier& classifier, const torch::Tensor& tokens_BT) {
  const auto& config = classifier->config();
  const auto weights = classifier->weights();
  const auto weight = [&](const std::string& name) { return find_weight(weights, name).tensor(); };
  const int64_t batch = tokens_BT.size(0), count = tokens_BT.size(1), width = config.d_model;
  auto positions_TD = torch::empty({count, width}, torch::kDouble);
  for (int64_t t = 0; t < count; ++t)
    for (int64_t i = 0; i < width; ++i) {
      const int64_t even = i - i % 2;
      const double angle =
          static_cast<double>(t) / std::pow(10000.0, static_cast<double>(even) / static_cast<double>(width));
      positions_TD[t][i] = i % 2 == 0 ? std::sin(angle) : std::cos(angle);
    }
  const auto type = weight("embedding.weight").scalar_type();
  auto x = at::embedding(weight("embedding.weight"), tokens_BT) + positions_TD.to(type);
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const std::string block = "blocks_" + std::to_string(i) + ".";
    const int64_t heads = config.layers[i].heads, head_dim = config.layers[i].head_dim;
    const auto qkv = at::linear(x, weight(block + "attention.qkv.weight"), weight(block + "attention.qkv.bias"))
                         .view({batch, count, 3, heads, head_dim})
                         .permute({2, 0, 3, 1, 4});
    const auto scores = at::matmul(qkv[0], qkv[1].transpose(2, 3)) / std::sqrt(static_cast<double>(head_dim));
    const auto mixed = at::matmul(scores.softmax(-1), qkv[2]).transpose(1, 2).reshape({batch, count, width});
    const auto attended =
        at::linear(mixed, weight(block + "attention.out.weight"), weight(block + "attention.out.bias"));
    const auto norm = [&](const torch::Tensor& sum, const std::string& name) {
      return at::layer_norm(sum, {width}, weight(block + name + ".weight"), weight(block + name + ".bias"), 1e-5);
    };
    x = norm(x + attended, "attention_norm");
    const auto hidden =
        at::relu(at::linear(x, weight(block + "mlp.inner_0.weight"), weight(block + "mlp.inner_0.bias")));
    x = norm(x + at::linear(hidden, weight(block + "mlp.down.weight"), weight(block + "mlp.down.bias")), "mlp_norm");
  }
  return at::linear(x.mean(1), weight("head.weight"), weight("head.bias"));
}

TEST(Classifier, IsThePostNormEncoder) {
  const auto classifier = drawn_encoder(encoder_config("2x1,4x2", 24, 40));
  convert_weights(classifier->weights(), torch::kDouble);
  classifier->set_compute_type(torch::kDouble);
  const auto text = random_tokens(3, 20);
  const auto logits = classifier->head.logits(classifier(text, {}), {});
  EXPECT_LE((logits - plain_encoder(classifier, text)).abs().max().item<double>(), 1e-12);
}

TEST(Classifier, ReadsRowsUpToTheirLengths) {
  for (const auto type : {torch::kFloat, torch::kBFloat16}) {
    const auto classifier = drawn_encoder(encoder_config("2x1,4x1", 32, 40), type);
    auto text = random_tokens(3, 20);
    const auto lengths_B = torch::tensor({20, 7, 1}, torch::kInt);
    ForwardContext context;
    context.lengths_B = lengths_B;
    const auto together = classifier->head.logits(classifier(text, context), lengths_B);
    for (int64_t b = 0; b < 3; ++b) {
      const auto row = text.narrow(0, b, 1).narrow(1, 0, lengths_B[b].item<int64_t>());
      const auto alone = classifier->head.logits(classifier(row, {}), {});
      EXPECT_LE((alone - together.narrow(0, b, 1)).abs().max().item<double>(), type == torch::kFloat ? 1e-5 : 0.05);
    }
    text[1].narrow(0, 7, 13) = 0;  // padding
    EXPECT_TRUE(torch::equal(classifier->head.logits(classifier(text, context), lengths_B), together));
  }
}

TEST(Classifier, SeesLaterTokensOnlyWithFullAttention) {
  for (const bool full : {true, false}) {
    auto config = encoder_config("2x2", 24, 40);
    config.attention = full ? "full" : "causal";
    const auto classifier = drawn_encoder(config);
    auto text = random_tokens(1, 12);
    const auto before = classifier(text, {}).narrow(1, 0, 11).clone();
    text[0][11] = (text[0][11] + 1) % 50;
    EXPECT_EQ(torch::equal(classifier(text, {}).narrow(1, 0, 11), before), !full);
  }
}

TEST(Classifier, HasTheGradientsOfItsPlainVersion) {
  const auto classifier = drawn_encoder(encoder_config("2x1,4x1", 24, 40));
  convert_weights(classifier->weights(), torch::kDouble);
  classifier->set_compute_type(torch::kDouble);
  const auto text = random_tokens(4, 9), labels_B = torch::tensor({0, 2, 1, 2}, torch::kLong);
  const auto gradients = [&](const torch::Tensor& logits_BC) {
    clear_gradients(classifier->weights());
    ClassificationHead::loss(logits_BC, labels_B).backward();
    std::vector<torch::Tensor> found;
    for (const auto& entry : classifier->weights()) found.push_back(entry.weight.tensor().grad().clone());
    return found;
  };
  const auto fast = gradients(classifier->head.logits(classifier(text, {}), {}));
  const auto plain = gradients(plain_encoder(classifier, text));
  for (size_t i = 0; i < fast.size(); ++i)
    EXPECT_LE((fast[i] - plain[i]).abs().max().item<double>(), 1e-11) << classifier->weights()[i].name;
}

TEST(Classifier, HasTheSameGradientsIfActivationsAreRecomputed) {
  for (const auto type : {torch::kFloat, torch::kBFloat16}) {
    const auto classifier = drawn_encoder(encoder_config("2x1,4x2", 24, 40), type);
    const auto text = random_tokens(4, 9), labels_B = torch::tensor({0, 2, 1, 2}, torch::kLong);
    const auto gradients = [&](bool recompute) {
      clear_gradients(classifier->weights());
      classifier->set_recompute(recompute);
      ClassificationHead::loss(classifier->head.logits(classifier(text, {}), {}), labels_B).backward();
      std::vector<torch::Tensor> found;
      for (const auto& entry : classifier->weights()) found.push_back(entry.weight.tensor().grad().clone());
      return found;
    };
    const auto kept = gradients(false), again = gradients(true);
    for (size_t i = 0; i < kept.size(); ++i) EXPECT_TRUE(torch::equal(kept[i], again[i])) << i;
  }
}

/// The same encoder with a budget in every layer.
ModelConfig with_budgets(ModelConfig config, const std::string& kind, double share = 1) {
  for (auto& layer : config.layers) {
    layer.budget.kind = kind;
    layer.budget.share = share;
  }
  complete(config);
  return config;
}

TEST(BudgetClassifier, HasTheParametersOfThePaper) {
  // 206.70 MB with f: D -> D -> 1 and g: D -> H in each layer.
  auto config = with_budgets(encoder_config("8x4", 768, 3072), "learned");
  config.vocab_size = 30522;
  const auto cost = model_cost(config);
  EXPECT_EQ(cost.parameters, 54'184'743);
  EXPECT_NEAR(static_cast<double>(cost.parameters) * 4 / (1 << 20), 206.70, 0.005);
  EXPECT_EQ(cost.layers[0].flops_per_token, model_cost(encoder_config("8x4", 768, 3072)).layers[0].flops_per_token)
      << "the networks compute once per text, not per token";
}

TEST(BudgetClassifier, IsThePlainModelIfAllHeadsCountAlike) {
  const auto config = encoder_config("2x1,4x2", 24, 40);
  const auto plain = drawn_encoder(config, torch::kBFloat16);
  const auto budgeted = drawn_encoder(with_budgets(config, "fixed", 1), torch::kBFloat16);
  torch::NoGradGuard no_gradients;
  const auto weights = plain->weights();
  for (const auto& entry : budgeted->weights()) {
    if (entry.name.find("budget") == std::string::npos)
      entry.weight.tensor().copy_(find_weight(weights, entry.name).tensor());
    else
      entry.weight.tensor().zero_();
  }
  const auto text = random_tokens(3, 20);
  EXPECT_TRUE(torch::equal(budgeted->head.logits(budgeted(text, {}), {}), plain->head.logits(plain(text, {}), {})));
}

/// The output of an encoder whose every layer multiplies its heads by the given weights [B, H].
torch::Tensor scaled_encoder(const Classifier& classifier, const torch::Tensor& text,
                             const std::vector<torch::Tensor>& weights_BH) {
  auto config = classifier->config();
  for (auto& layer : config.layers) layer.budget = {};
  std::vector<torch::Tensor> logits;
  for (int64_t b = 0; b < text.size(0); ++b) {
    Classifier scaled(config);
    const auto from = classifier->weights();
    torch::NoGradGuard no_gradients;
    for (const auto& entry : scaled->weights()) entry.weight.tensor().copy_(find_weight(from, entry.name).tensor());
    for (size_t i = 0; i < config.layers.size(); ++i) {
      // Scaling a head's output is scaling its columns of W_O.
      const auto columns = weights_BH[i][b].repeat_interleave(config.layers[i].head_dim);
      scaled->blocks[i]->attention.out.weight.tensor().mul_(columns);
    }
    logits.push_back(scaled->head.logits(scaled(text.narrow(0, b, 1), {}), {}));
  }
  return at::cat(logits);
}

TEST(BudgetClassifier, ComputesKeptHeadsAlone) {
  const auto classifier = drawn_encoder(with_budgets(encoder_config("2x1,4x2", 24, 40), "learned"));
  const auto text = random_tokens(3, 20);
  Budgets budgets({}, 1, {});
  ForwardContext context;
  context.budgets = &budgets;
  torch::NoGradGuard no_gradients;
  const auto logits = classifier->head.logits(classifier(text, context), {});
  std::vector<torch::Tensor> weights_BH;
  int64_t kept = 0, heads = 0;
  for (const auto& decision : budgets.decisions()) {
    const int64_t count = decision.kept_BH.size(1);
    weights_BH.push_back(decision.share_B.unsqueeze(1) * count * decision.probability_BH * decision.kept_BH);
    kept += decision.kept_BH.sum().item<int64_t>();
    heads += decision.kept_BH.numel();
  }
  EXPECT_LT(kept, heads) << "some heads are left out";
  EXPECT_LE((logits - scaled_encoder(classifier, text, weights_BH)).abs().max().item<double>(), 2e-5);
  // Without Budgets, the temperature is the config's, that of the end of training.
  EXPECT_TRUE(torch::equal(classifier->head.logits(classifier(text, {}), {}), logits));
}

TEST(BudgetClassifier, TrainsAllHeadsAndRecomputesThemBitForBit) {
  for (const auto type : {torch::kFloat, torch::kBFloat16}) {
    const auto classifier = drawn_encoder(with_budgets(encoder_config("2x1,4x2", 24, 40), "learned"), type);
    const auto text = random_tokens(4, 9), labels_B = torch::tensor({0, 2, 1, 2}, torch::kLong);
    std::vector<BudgetDecision> decisions;
    double added = 0;
    const auto gradients = [&](bool recompute) {
      clear_gradients(classifier->weights());
      classifier->set_recompute(recompute);
      torch::Tensor loss;
      {
        Auxiliary auxiliary(0.2);
        Budgets budgets({}, 0.2, {.seed = 1, .step = 20});
        ForwardContext context;
        context.auxiliary = &auxiliary;
        context.budgets = &budgets;
        loss = ClassificationHead::loss(classifier->head.logits(classifier(text, context), {}), labels_B) +
               auxiliary.loss();
        added = auxiliary.loss().item<double>();
        decisions = budgets.decisions();
      }
      loss.backward();
      std::vector<torch::Tensor> found;
      for (const auto& entry : classifier->weights()) {
        EXPECT_TRUE(entry.weight.tensor().grad().defined()) << entry.name;
        found.push_back(entry.weight.tensor().grad().clone());
      }
      return found;
    };
    const auto kept = gradients(false);
    const auto first = decisions;
    const double first_added = added;
    const auto again = gradients(true);
    for (size_t i = 0; i < kept.size(); ++i) EXPECT_TRUE(torch::equal(kept[i], again[i])) << i;
    EXPECT_EQ(added, first_added);
    ASSERT_EQ(decisions.size(), 3u);
    for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(torch::equal(decisions[i].probability_BH, first[i].probability_BH));
  }
}

TEST(BudgetClassifier, ReadsRowsUpToTheirLengths) {
  const auto classifier = drawn_encoder(with_budgets(encoder_config("2x1,4x1", 32, 40), "learned"));
  const auto text = random_tokens(3, 20), lengths_B = torch::tensor({20, 7, 1}, torch::kInt);
  ForwardContext context;
  context.lengths_B = lengths_B;
  torch::NoGradGuard no_gradients;
  const auto together = classifier->head.logits(classifier(text, context), lengths_B);
  for (int64_t b = 0; b < 3; ++b) {
    const auto row = text.narrow(0, b, 1).narrow(1, 0, lengths_B[b].item<int64_t>());
    const auto alone = classifier->head.logits(classifier(row, {}), {});
    EXPECT_LE((alone - together.narrow(0, b, 1)).abs().max().item<double>(), 1e-5);
  }
}

TEST(BudgetClassifier, HasATemperatureAboveZero) {
  auto config = with_budgets(encoder_config("2x2", 24, 40), "learned");
  for (const double tau : {0.0, 1e-40, 1e7}) {
    config.budget_tau = tau;
    EXPECT_REFUSED(complete(config), "model.budget_tau");
  }
}

TEST(ClassificationHead, PoolsWithoutPadding) {
  torch::manual_seed(4);
  const ClassificationHead mean(6, 2, Pooling::mean), first(6, 2, Pooling::first);
  auto hidden = torch::randn({3, 5, 6});
  hidden[1].narrow(0, 2, 3).fill_(std::numeric_limits<float>::quiet_NaN());
  hidden[2].fill_(std::numeric_limits<float>::infinity());
  const auto lengths_B = torch::tensor({5, 2, 0}, torch::kInt);
  const auto pooled = mean.pooled(hidden, lengths_B);
  EXPECT_LE((pooled[0] - hidden[0].mean(0)).abs().max().item<double>(), 1e-6);
  EXPECT_LE((pooled[1] - hidden[1].narrow(0, 0, 2).mean(0)).abs().max().item<double>(), 1e-6);
  EXPECT_TRUE(torch::equal(pooled[2], torch::zeros({6})));
  EXPECT_TRUE(torch::equal(first.pooled(hidden, lengths_B)[1], hidden[1][0]));
  const auto whole = torch::randn({2, 5, 6}).to(torch::kBFloat16);
  EXPECT_EQ(mean.pooled(whole, {}).scalar_type(), torch::kFloat);
  EXPECT_LE((mean.pooled(whole, {}) - whole.to(torch::kFloat).mean(1)).abs().max().item<double>(), 1e-6);
}

TEST(ClassifierConfig, ThatIsWrongGetsASentence) {
  const auto refused = [](const std::function<void(ModelConfig&)>& change) {
    auto config = encoder_config("2x2", 24, 40);
    change(config);
    return message_of<InputError>([&] { complete(config); });
  };
  EXPECT_CONTAINS(refused([](ModelConfig& c) { c.classes = 1; }), "model.classes: expected 0");
  EXPECT_CONTAINS(refused([](ModelConfig& c) { c.classes = -3; }), "found -3");
  EXPECT_CONTAINS(refused([](ModelConfig& c) { c.classes = 0; }), "expected causal in a language model");
  EXPECT_CONTAINS(refused([](ModelConfig& c) { c.attention = "both"; }), "expected causal or full; found \"both\"");
  EXPECT_CONTAINS(refused([](ModelConfig& c) { c.pooling = "last"; }), "expected mean or first; found \"last\"");
  EXPECT_CONTAINS(refused([](ModelConfig& c) { c.learned_positions = true; }), "found both");
  EXPECT_CONTAINS(refused([](ModelConfig& c) { c.layers[1].norm = "batch"; }),
                  "layer 1: expected norm rms, layer or none");
  EXPECT_CONTAINS(refused([](ModelConfig& c) { c.layers[1].norm_place = "mid"; }), "expected norm_place pre or post");
  EXPECT_CONTAINS(refused([](ModelConfig& c) { c.layers[0].norm = "none"; }), "expected a norm for norm_place post");
}

TEST(Classifier, RefusesACache) {
  const auto config = encoder_config("2x1", 24, 40);
  const auto classifier = drawn_encoder(config);
  KvCache cache(config.layers, {.positions = 16});
  ForwardContext context;
  context.cache = &cache;
  EXPECT_REFUSED(classifier(random_tokens(1, 4), context), "expected causal attention with a cache");
}

}  // namespace
}  // namespace prism
