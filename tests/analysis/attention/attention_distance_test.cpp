// Attention distance against a loop over single keys in float64, closed-form cases, and refused inputs.
#include "prism/analysis/attention/attention_distance.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <limits>

#include "prism/core/stop.h"
#include "prism/models/batch.h"
#include "tests/core/message_of.h"
#include "tests/core/temporary_folder.h"
#include "tests/generation/tiny_model.h"
#include "tests/layers/weights.h"

namespace prism {
namespace {

// B batch, T query positions, S key positions, H query heads, G key/value heads, D head width

/// A fault added to the reference, to show that the comparison would notice it.
enum class Fault { none, query_more, key_more };

int64_t length_of(const torch::Tensor& lengths_B, int64_t b, int64_t all) {
  return lengths_B.defined() ? lengths_B[b].item<int64_t>() : all;
}

/// Equation (1) for one head, query by query and key by key: the sum over the counted queries of all sequences, and
/// their number.
std::pair<double, int64_t> plain_distance(const AttentionInput& input, int64_t head, Fault fault) {
  const auto q = input.q_BTHD.to(torch::kDouble).contiguous(), k = input.kv.k_BGSD.to(torch::kDouble).contiguous();
  const auto q_BTHD = q.accessor<double, 4>(), k_BGSD = k.accessor<double, 4>();
  const int64_t group = head * k.size(1) / q.size(2), head_dim = q.size(3);
  double sum = 0;
  int64_t count = 0;
  for (int64_t b = 0; b < q.size(0); ++b) {
    const int64_t queries = length_of(input.q_lengths_B, b, q.size(1));
    const int64_t keys = length_of(input.kv_lengths_B, b, k.size(2));
    for (int64_t t = 0; t < queries; ++t) {
      const int64_t position = t + keys - queries;
      if (position + (fault == Fault::query_more ? 1 : 0) < keys / 2) continue;
      const int64_t last = std::min(keys - 1, position + (fault == Fault::key_more ? 1 : 0));
      double weights = 0, distances = 0;
      for (int64_t s = 0; s <= last; ++s) {
        const auto& documents = input.documents_BS;
        if (documents.defined() && documents[b][s].item<int>() != documents[b][position].item<int>()) continue;
        double score = 0;
        for (int64_t d = 0; d < head_dim; ++d) score += q_BTHD[b][t][head][d] * k_BGSD[b][group][s][d];
        const double weight = std::exp(score / std::sqrt(static_cast<double>(head_dim)));
        weights += weight;
        distances += weight * std::abs(static_cast<double>(position - s));
      }
      sum += distances / weights;
      ++count;
    }
  }
  return {sum, count};
}

/// Forwards every input to the probe and sums the plain distances of the same inputs.
class DistanceChecker : public Probe {
 public:
  DistanceChecker(const std::vector<LayerConfig>& layers, Fault fault) : probe(layers), fault_(fault) {
    for (const auto& layer : layers) sums_.emplace_back(static_cast<size_t>(layer.heads), 0.0);
    counts_.resize(layers.size());
  }

  void observe_attention(size_t layer, const AttentionInput& input) override {
    probe.observe_attention(layer, input);
    for (size_t head = 0; head < sums_[layer].size(); ++head) {
      const auto [sum, count] = plain_distance(input, static_cast<int64_t>(head), fault_);
      sums_[layer][head] += sum;
      if (head == 0) counts_[layer] += count;
    }
  }

  /// The largest relative difference between a head's distance and the plain one.
  double largest_error() const {
    double error = 0;
    for (const auto& layer : probe.result().layers) {
      const auto at = static_cast<size_t>(layer.layer);
      EXPECT_EQ(layer.head_distances.size(), sums_[at].size());
      for (size_t head = 0; head < sums_[at].size(); ++head) {
        const double expected = sums_[at][head] / static_cast<double>(counts_[at]);
        EXPECT_TRUE(std::isfinite(layer.head_distances[head]) && expected > 0) << layer.head_distances[head];
        error = std::max(error, std::abs(layer.head_distances[head] - expected) / expected);
      }
    }
    return error;
  }

  AttentionDistanceProbe probe;

 private:
  Fault fault_;
  std::vector<std::vector<double>> sums_;
  std::vector<int64_t> counts_;
};

struct Case {
  const char* name;
  const char* schedule;
  const char* kv_schedule;
  torch::ScalarType type;
  bool documents;
};

Decoder decoder_of(const Case& shape) {
  ModelConfig config;
  config.vocab_size = 50;
  config.d_model = 48;
  config.context = 33;
  config.schedule = shape.schedule;
  config.kv_schedule = shape.kv_schedule;
  config.ffn_width = 40;
  config.init_std = 0.3;
  Decoder decoder = make_decoder(config);
  if (shape.type == torch::kDouble) convert_weights(decoder->weights(), torch::kDouble);
  decoder->set_compute_type(shape.type);
  return decoder;
}

double error_of(const Case& shape, Fault fault) {
  const torch::NoGradGuard no_gradients;
  Decoder decoder = decoder_of(shape);
  DistanceChecker checker(decoder->config().layers, fault);
  ForwardContext context;
  context.probe = &checker;
  torch::manual_seed(2);
  // An odd and an even length; a document that ends in either half.
  for (const int64_t tokens : {33, 20}) {
    if (shape.documents) {
      context.documents_BT = torch::zeros({2, tokens}, torch::kInt);
      context.documents_BT[0].narrow(0, 5, tokens - 5) += 1;
      context.documents_BT[0].narrow(0, tokens - 4, 4) += 1;
      context.positions_BT = positions_in_documents(context.documents_BT);
    }
    decoder(torch::randint(50, {2, tokens}, torch::kLong), context);
  }
  const auto result = checker.probe.result();
  EXPECT_EQ(result.sequences, 4);
  EXPECT_EQ(result.context, 33);
  EXPECT_EQ(result.queries, 2 * (17 + 10));
  return checker.largest_error();
}

class EveryModel : public testing::TestWithParam<Case> {};

TEST_P(EveryModel, HasTheDistancesOfThePlainSum) {
  // Both start from the same queries and keys. Scores of about 10 have an error of a few float32 epsilons (1.2e-7)
  // each, which does not accumulate in a mean over tens of queries. In float64 the error is negligible.
  EXPECT_LT(error_of(GetParam(), Fault::none), GetParam().type == torch::kDouble ? 1e-12 : 1e-5);
}

TEST_P(EveryModel, WouldNotPassWithAQueryOrAKeyMore) {
  EXPECT_GT(error_of(GetParam(), Fault::query_more), 1e-3);
  EXPECT_GT(error_of(GetParam(), Fault::key_more), 1e-3);
}

INSTANTIATE_TEST_SUITE_P(AttentionDistance, EveryModel,
                         testing::Values(Case{"uniform", "4x3", "", torch::kDouble, false},
                                         Case{"rising", "2x1,4x1,6x1", "", torch::kDouble, false},
                                         Case{"grouped", "2x1,4x1,6x1", "1x1,4x1,2x1", torch::kDouble, false},
                                         Case{"documents", "2x1,4x1,6x1", "1x1,4x1,2x1", torch::kDouble, true},
                                         Case{"float32", "2x1,4x1,6x1", "1x1,4x1,2x1", torch::kFloat, true},
                                         Case{"bfloat16", "2x1,4x1,6x1", "1x1,4x1,2x1", torch::kBFloat16, true}),
                         [](const auto& made) { return std::string(made.param.name); });

std::vector<LayerConfig> one_layer(int64_t heads, int64_t kv_heads, int64_t head_dim) {
  return {{heads, kv_heads, head_dim, {}, {}}};
}

AttentionInput random_input(int64_t batch, int64_t queries, int64_t keys, int64_t heads, int64_t kv_heads) {
  torch::manual_seed(3);
  AttentionInput input;
  input.q_BTHD = 2 * torch::randn({batch, queries, heads, 8}, torch::kDouble);
  input.kv.k_BGSD = torch::randn({batch, kv_heads, keys, 8}, torch::kDouble);
  input.kv.v_BGSE = input.kv.k_BGSD;
  return input;
}

/// The probe's result for one layer after `inputs`.
AttentionDistance distance_of(const std::vector<AttentionInput>& inputs) {
  const auto& input = inputs.front();
  AttentionDistanceProbe probe(one_layer(input.q_BTHD.size(2), input.kv.k_BGSD.size(1), input.q_BTHD.size(3)));
  for (const auto& shown : inputs) probe.observe_attention(0, shown);
  return probe.result();
}

/// The mean over all heads.
double mean_distance(const AttentionInput& input) {
  return distance_of({input}).layers.back().distance;
}

TEST(AttentionDistance, OfEvenAttentionIsThreeEighthsOfTheContext) {
  for (const int64_t tokens : {2, 8, 64, 1024}) {
    auto input = random_input(1, tokens, tokens, 2, 1);
    input.q_BTHD.zero_();
    EXPECT_NEAR(mean_distance(input), 3.0 * static_cast<double>(tokens) / 8 - 0.25, 1e-9) << tokens;
  }
}

TEST(AttentionDistance, OfAttentionToOneTokenIsTheWayToIt) {
  auto input = random_input(1, 64, 64, 1, 1);
  input.q_BTHD.fill_(1000);
  input.kv.k_BGSD.zero_();
  input.kv.k_BGSD.select(2, 0).fill_(1);
  EXPECT_NEAR(mean_distance(input), 3.0 * 64 / 4 - 0.5, 1e-9);
  // With rising keys, each query attends to the last visible key, its own.
  input.kv.k_BGSD.copy_(torch::arange(64, torch::kDouble).view({1, 1, 64, 1}));
  EXPECT_NEAR(mean_distance(input), 0, 1e-9);
}

TEST(AttentionDistance, EndsAtTheStartOfADocument) {
  auto input = random_input(1, 8, 8, 1, 1);
  input.q_BTHD.zero_();
  input.documents_BS = torch::tensor({{0, 0, 0, 0, 0, 1, 1, 1}}, torch::kInt);
  // Positions 4 to 7 count, with 4, 0, 1 and 2 tokens of their document before them.
  EXPECT_NEAR(mean_distance(input), (4 + 0 + 1 + 2) / 2.0 / 4, 1e-12);
}

TEST(AttentionDistance, IsTheSameInBlocksAsFromAllProbabilitiesAtOnce) {
  // 6 heads of 1024 keys give 170 rows per block: four blocks, the last of two rows.
  auto input = random_input(1, 1024, 1024, 6, 1);
  const auto position_T = torch::arange(1024, torch::kDouble);
  const auto distance_TS = (position_T.unsqueeze(1) - position_T).abs();
  for (const auto causality : {Causality::causal, Causality::full})
    for (const bool in_documents : {false, true}) {
      input.causality = causality;
      if (in_documents) input.documents_BS = torch::arange(1024, torch::kInt).floor_divide(300).unsqueeze(0);
      torch::Tensor probabilities_BHTS;
      attend_reference(input, &probabilities_BHTS);
      const auto expected_H =
          (probabilities_BHTS * distance_TS).sum(-1).slice(2, causality == Causality::causal ? 512 : 0).mean(2)[0];
      const auto found = distance_of({input}).layers.back().head_distances;
      for (size_t head = 0; head < 6; ++head)
        EXPECT_NEAR(found[head], expected_H[static_cast<int64_t>(head)].item<double>(), 1e-9);
      input.documents_BS = torch::Tensor();
    }
}

TEST(AttentionDistance, OfAPaddedRowIsThatOfItsOwnLength) {
  auto padded = random_input(3, 20, 20, 4, 2);
  padded.q_lengths_B = padded.kv_lengths_B = torch::tensor({20, 7, 0}, torch::kInt);
  // The contents of the padding must not matter.
  padded.q_BTHD[1].narrow(0, 7, 13).fill_(std::numeric_limits<double>::quiet_NaN());
  padded.kv.k_BGSD[1].narrow(1, 7, 13).fill_(std::numeric_limits<double>::quiet_NaN());
  const auto row = [&](int64_t b, int64_t tokens) {
    AttentionInput input;
    input.q_BTHD = padded.q_BTHD.narrow(0, b, 1).narrow(1, 0, tokens);
    input.kv.k_BGSD = padded.kv.k_BGSD.narrow(0, b, 1).narrow(2, 0, tokens);
    return input;
  };
  const auto found = distance_of({padded}), expected = distance_of({row(0, 20), row(1, 7)});
  EXPECT_EQ(fields_to_json(found), fields_to_json(expected));
  EXPECT_EQ(found.sequences, 2);
  EXPECT_EQ(found.queries, 10 + 4);  // positions 4 to 7 of 7, counted from 1
}

TEST(AttentionDistance, BehindACacheTakesTheKeysSoFarForTheSequence) {
  const auto whole = random_input(1, 12, 12, 4, 2);
  AttentionInput last = whole;
  last.q_BTHD = whole.q_BTHD.narrow(1, 4, 8);  // positions 4 to 11, of which 6 to 11 count
  EXPECT_EQ(fields_to_json(distance_of({last})), fields_to_json(distance_of({whole})));
}

TEST(AttentionDistance, FollowsTheScaleOfTheInput) {
  auto input = random_input(1, 16, 16, 2, 2);
  const double before = mean_distance(input);
  input.scale = 0.0;
  EXPECT_NEAR(mean_distance(input), 3.0 * 16 / 8 - 0.25, 1e-9);
  EXPECT_GT(std::abs(before - mean_distance(input)), 1e-3);
}

TEST(AttentionDistance, OfAModelHasMeansAndDeviationsOverHeads) {
  const auto layer = distance_of({random_input(1, 16, 16, 3, 3)}).layers.back();
  const auto heads = torch::tensor(layer.head_distances, torch::kDouble);
  EXPECT_EQ(layer.heads, 3);
  EXPECT_EQ(layer.head_dim, 8);
  EXPECT_NEAR(layer.distance, heads.mean().item<double>(), 1e-12);
  EXPECT_NEAR(layer.distance_sd, heads.std().item<double>(), 1e-12);
}

TEST(AttentionDistance, RefusesAttentionThatItIsNotDefinedFor) {
  AttentionDistanceProbe probe(one_layer(2, 2, 8));
  auto input = random_input(1, 4, 4, 2, 2);
  input.kept_heads_BH = torch::ones({1, 2}, torch::kBool);
  EXPECT_REFUSED(probe.observe_attention(0, input), "heads that are not computed");
  EXPECT_REFUSED(probe.result(), "found none");
  EXPECT_THROW(probe.observe_attention(1, random_input(1, 4, 4, 2, 2)), InternalError);
}

/// Shards of 25 windows of 8 tokens.
class Windows : public testing::Test {
 protected:
  Windows() {
    TokenShardWriter writer(folder_.path() / "valid_000000.bin", kTinyVocab);
    std::vector<int32_t> tokens;
    for (int32_t i = 0; i < 201; ++i) tokens.push_back(i * i % 251);
    writer.write(tokens);
    writer.commit();
  }

  WindowLoader loader(int64_t rows) const {
    return WindowLoader(data(), {.context = 8, .rows = rows, .shuffle = false}, -1);
  }

  const TokenDataset& data() const {
    if (!data_) data_.emplace(folder_.path(), "valid");
    return *data_;
  }

  TemporaryFolder folder_;
  mutable std::optional<TokenDataset> data_;
};

TEST_F(Windows, AreMeasuredAsManyAsAreAskedForWhateverTheBatch) {
  const auto decoder = tiny_decoder();
  std::vector<int64_t> told;
  const auto in_batches =
      measure_attention_distance(decoder, loader(4), 10, [&](int64_t done) { told.push_back(done); });
  EXPECT_EQ(told, (std::vector<int64_t>{4, 8, 10}));
  EXPECT_EQ(in_batches->sequences, 10);
  EXPECT_EQ(in_batches->context, 8);
  EXPECT_EQ(in_batches->queries, 40);
  const auto one_by_one = measure_attention_distance(decoder, loader(1), 10);
  for (size_t i = 0; i < in_batches->layers.size(); ++i)
    EXPECT_NEAR(in_batches->layers[i].distance, one_by_one->layers[i].distance, 1e-5);
  EXPECT_NE(measure_attention_distance(decoder, loader(1), 11)->layers.back().distance,
            one_by_one->layers.back().distance);
  EXPECT_EQ(measure_attention_distance(decoder, loader(4), 1000)->sequences, 25);
  EXPECT_REFUSED(measure_attention_distance(decoder, loader(4), 0), "at least 1");
}

TEST_F(Windows, AreHandedToTheModelAsTheyAre) {
  auto decoder = tiny_decoder();
  const torch::NoGradGuard no_gradients;
  auto windows = loader(5);
  AttentionDistanceProbe probe(decoder->config().layers);
  for (int i = 0; i < 2; ++i) {
    Batch batch = windows.next();
    BatchTensors tensors(batch);
    tensors.context.probe = &probe;
    decoder(tensors.tokens_BT, tensors.context);
  }
  EXPECT_EQ(fields_to_json(probe.result()), fields_to_json(*measure_attention_distance(decoder, loader(5), 10)));
}

TEST_F(Windows, AreLeftAtAStopSignal) {
  const auto stopped = [&] {
    catch_stop_signals();
    std::raise(SIGTERM);
    std::exit(measure_attention_distance(tiny_decoder(), loader(4), 10) ? 1 : 0);
  };
  EXPECT_EXIT(stopped(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace prism
