// The spectral selector and mean pooling against their formulas in double precision, head by head and row by row, on
// random prompts; and attention over the blocks that the first keeps.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "prism/core/random.h"
#include "prism/kernels/attention/attend.h"
#include "prism/sparse/methods/pooled/keep_by_bands.h"
#include "prism/sparse/methods/pooled/mean_pooling.h"
#include "prism/sparse/methods/pooled/pooled_tokens.h"
#include "prism/sparse/methods/pooled/spectral.h"
#include "tests/sparse/golden_input.h"

namespace prism {
namespace {

using torch::Tensor;

enum class Layout { halves, interleaved, partial };

/// Random prompt and settings.
struct Draw {
  int64_t heads, groups, tokens, queries, width, query_block, key_block, high, low, recent, last_dense;
  double p_high, p_low;
  const char *calibration, *tail;
  Layout layout;
  torch::ScalarType type;

  /// Number of rotary features.
  int64_t turned() const { return layout == Layout::partial ? width / 2 : width; }
  RotaryPairs pairs() const {
    std::vector<double> angles;
    for (int64_t j = 0; j < turned() / 2; ++j) angles.push_back(std::pow(0.7, static_cast<double>(j)));
    return layout == Layout::interleaved ? interleaved_pairs(width, angles) : half_split_pairs(width, angles);
  }
  int64_t rows() const { return (tokens - 1) / query_block - (tokens - queries) / query_block + 1; }
  int64_t blocks() const { return (tokens + key_block - 1) / key_block; }
};

Draw draw(Random& random) {
  const auto below = [&](int64_t count) { return static_cast<int64_t>(random.below(static_cast<uint64_t>(count))); };
  const auto one_of = [&](const auto& list) { return list[random.below(std::size(list))]; };
  const int64_t widths[] = {32, 64, 96, 128}, blocks[] = {32, 64, 128, 256}, groups[] = {1, 2}, shared[] = {1, 2, 4};
  const char *calibrations[] = {"all_blocks", "off", "causal_running"}, *tails[] = {"exact", "padded"};
  Draw d{};
  d.groups = one_of(groups);
  d.heads = d.groups * one_of(shared);
  d.width = one_of(widths);
  d.query_block = one_of(blocks);
  d.key_block = random.below(2) == 0 ? d.query_block : one_of(blocks);
  d.tokens = 1 + below(1200);
  d.queries = random.below(2) == 0 ? d.tokens : 1 + below(d.tokens);
  d.layout = one_of(std::array{Layout::halves, Layout::interleaved, Layout::partial});
  d.type = one_of(std::array{torch::kFloat, torch::kBFloat16});
  d.high = 2 * (1 + below(d.turned() / 2));
  d.low = 2 * (1 + below(d.turned() / 2));
  d.p_high = 0.3 + 0.69 * random.uniform();
  d.p_low = 0.3 + 0.69 * random.uniform();
  d.calibration = one_of(calibrations);
  d.tail = one_of(tails);
  d.recent = 1 + below(4);
  d.last_dense = below(3);
  return d;
}

/// Means of the blocks of [T, D], whose first row is at position `first`.
Tensor pooled(const Tensor& rows_TD, int64_t block, int64_t first, bool is_padded) {
  std::vector<Tensor> means;
  for (int64_t begin = first, end = 0; begin < first + rows_TD.size(0); begin = end) {
    end = std::min((begin / block + 1) * block, first + rows_TD.size(0));
    const auto sum = rows_TD.slice(0, begin - first, end - first).sum(0);
    means.push_back(sum / static_cast<double>(is_padded ? block : end - begin));
  }
  return at::stack(means);
}

double rms(const Tensor& matrix) {
  return matrix.square().mean().sqrt().item<double>();
}

/// Of the attention; only mean pooling depends on it.
constexpr double kScale = 0.07;

struct Decisions {
  Tensor kept_MN;       ///< bool
  Tensor uncertain_MN;  ///< bool: rounding in float32 may change the decision
};

/// The features of a band: pairs [begin, end) ordered from fast to slow, and for the low band those that do not turn.
Tensor features_of(const Draw& d, int64_t begin, int64_t end, bool with_unturned) {
  std::vector<int64_t> features;
  for (int64_t j = begin; j < end; ++j) {
    const auto pair = d.layout == Layout::interleaved ? std::pair{2 * j, 2 * j + 1} : std::pair{j, j + d.turned() / 2};
    features.insert(features.end(), {pair.first, pair.second});
  }
  for (int64_t i = d.turned(); with_unturned && i < d.width; ++i) features.push_back(i);
  return torch::tensor(features, torch::kLong);
}

/// Keeps the largest weights [visible] until they hold the share, for row m.
void keep_share(const Tensor& weights, double share, int64_t m, const Decisions& found) {
  std::vector<int64_t> order(static_cast<size_t>(weights.size(0)));
  std::iota(order.begin(), order.end(), 0);
  const double* weight = weights.const_data_ptr<double>();
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return weight[a] > weight[b]; });
  double before = 0;
  for (const int64_t v : order) {
    if (before < share) found.kept_MN[m][v].fill_(true);
    if (std::abs(before - share) < 2e-5) found.uncertain_MN[m].fill_(true);
    before += weight[v];
  }
}

/// Decisions for one head by the formulas: those of the spectral selector, or of mean pooling with d.p_high.
Decisions by_formulas(const Draw& d, const Tensor& q_TD, const Tensor& k_SD, bool by_bands) {
  const int64_t first = d.tokens - d.queries, first_row = first / d.query_block, pairs = d.turned() / 2;
  const bool is_padded = by_bands && std::string(d.tail) == "padded";
  const auto queries = pooled(q_TD, d.query_block, first, is_padded), keys = pooled(k_SD, d.key_block, 0, is_padded);
  const int64_t rows = queries.size(0), blocks = keys.size(0);
  Decisions found{at::zeros({rows, blocks}, torch::kBool), at::zeros({rows, blocks}, torch::kBool)};
  const std::pair<Tensor, double> bands[] = {{features_of(d, 0, d.high / 2, false), d.p_high},
                                             {features_of(d, pairs - d.low / 2, pairs, true), d.p_low}};
  for (int64_t m = 0; m < rows; ++m) {
    const int64_t end = std::min((first_row + m + 1) * d.query_block, d.tokens);
    const int64_t visible = (end - 1) / d.key_block + 1, own = (first_row + m) * d.query_block / d.key_block;
    if (!by_bands) keep_share((at::mv(keys.slice(0, 0, visible), queries[m]) * kScale).softmax(0), d.p_high, m, found);
    for (const auto& [features, share] : bands) {
      if (!by_bands) break;
      const auto qz = queries.index_select(1, features), kz = keys.index_select(1, features);
      const double n = static_cast<double>(features.numel()), width = static_cast<double>(d.width);
      double tau = 1;
      if (std::string(d.calibration) != "off") {
        const int64_t seen_rows = std::string(d.calibration) == "all_blocks" ? rows : m + 1;
        const int64_t seen_keys = std::string(d.calibration) == "all_blocks" ? blocks : visible;
        const auto ratio = [](const Tensor& band, const Tensor& all, int64_t count) {
          return rms(band.slice(0, 0, count)) / std::max(rms(all.slice(0, 0, count)), 1e-6);
        };
        tau = std::sqrt(n / width) * ratio(qz, queries, seen_rows) * ratio(kz, keys, seen_keys);
      }
      keep_share((at::mv(kz.slice(0, 0, visible), qz[m]) / (std::sqrt(n) * tau)).softmax(0), share, m, found);
    }
    found.kept_MN[m][0].fill_(true);
    found.kept_MN[m]
        .slice(0, m + d.last_dense < rows ? std::max<int64_t>(0, own + 1 - d.recent) : 0, visible)
        .fill_(true);
  }
  return found;
}

class PooledFormulas : public testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(, PooledFormulas, testing::Bool(),
                         [](const auto& tested) { return tested.param ? "Spectral" : "MeanPooling"; });

TEST_P(PooledFormulas, GiveTheSameMasksOn200RandomPrompts) {
  Random random(11);
  int64_t entries = 0, uncertain = 0;
  for (int i = 0; i < 200; ++i) {
    const Draw d = draw(random);
    SCOPED_TRACE(testing::Message() << "case " << i << ": " << d.queries << " of " << d.tokens << " tokens, " << d.heads
                                    << "/" << d.groups << " heads " << d.width << " wide, blocks of " << d.query_block
                                    << " x " << d.key_block << ", " << d.high << " and " << d.low << ", "
                                    << d.calibration << ", " << d.tail << ", recent " << d.recent << ", last_dense "
                                    << d.last_dense << ", layout " << static_cast<int>(d.layout));
    torch::manual_seed(i);
    // Distributions from flat to sharp.
    const double sharp = 1 + 3 * random.uniform();
    const auto topics = torch::randn({4, d.width}, torch::kDouble);
    const auto own = topics.index_select(0, torch::randint(4, {d.blocks()}, torch::kLong))
                         .repeat_interleave(d.key_block, 0)
                         .narrow(0, 0, d.tokens);
    const auto q = (sharp * own + torch::randn({d.heads, d.tokens, d.width}, torch::kDouble)).to(d.type);
    const auto k = (sharp * own + torch::randn({d.groups, d.tokens, d.width}, torch::kDouble)).to(d.type);
    const SelectorInput input{.q_BTHD = q.narrow(1, d.tokens - d.queries, d.queries).transpose(0, 1).unsqueeze(0),
                              .k_BGSD = k.unsqueeze(0),
                              .q_lengths_B = {},
                              .kv_lengths_B = {},
                              .pairs = d.pairs(),
                              .scale = kScale};
    const BlockSizes blocks{.query_block = d.query_block, .key_block = d.key_block};
    const auto selector = GetParam()
                              ? make_spectral_selector({.p_high = d.p_high,
                                                        .p_low = d.p_low,
                                                        .high_dims = d.high,
                                                        .low_dims = d.low,
                                                        .calibration = d.calibration,
                                                        .tail = d.tail,
                                                        .recent = d.recent,
                                                        .last_dense = d.last_dense,
                                                        .blocks = blocks})
                              : make_mean_pooling_selector(
                                    {.p = d.p_high, .recent = d.recent, .last_dense = d.last_dense, .blocks = blocks});
    const auto kept = kept_blocks(selector->select(input, *selector->make_state(input)), d.blocks());
    for (int64_t h = 0; h < d.heads; ++h) {
      const auto expected = by_formulas(d, q[h].slice(0, d.tokens - d.queries).to(torch::kDouble),
                                        k[h * d.groups / d.heads].to(torch::kDouble), GetParam());
      const auto differs = kept[0][h].logical_xor(expected.kept_MN);
      EXPECT_FALSE(differs.logical_and(expected.uncertain_MN.logical_not()).any().item<bool>()) << "head " << h;
      entries += differs.numel();
      uncertain += expected.uncertain_MN.sum().item<int64_t>();
    }
  }
  EXPECT_LT(static_cast<double>(uncertain), 0.02 * static_cast<double>(entries)) << "too many uncertain entries";
}

TEST(BandTemperature, EqualsTheGoldens) {
  const GoldenInput golden(7, 2, 1930, 128, 128);
  const auto bands = paper_bands(half_split_pairs(128, std::vector<double>(64, 1.0)), 64, 96);
  const double expected[][2][2] = {{{.727828, .863439}, {.677043, .869398}}, {{.727798, .864594}, {.680965, .869684}}};
  for (const Tail tail : {Tail::padded, Tail::exact})
    for (int64_t h = 0; h < 2; ++h) {
      PooledTokens queries(bands, 128, 128, tail), keys(bands, 128, 128, tail);
      queries.append(torch::tensor(golden.q).view({2, 1930, 128})[h]);
      keys.append(torch::tensor(golden.k).view({2, 1930, 128})[h]);
      for (size_t band = 0; band < 2; ++band)
        EXPECT_NEAR(
            band_temperature(queries.blocks(), queries.blocks().blocks(), keys.blocks(), keys.blocks().blocks(), band),
            expected[tail == Tail::exact][h][band], 2e-5);
    }
}

TEST(BandTemperature, DoesNotFollowTheScaleOfQueries) {
  const auto bands = paper_bands(half_split_pairs(64, std::vector<double>(32, 1.0)), 32, 48);
  torch::manual_seed(3);
  const auto q = torch::randn({500, 64}), k = torch::randn({500, 64});
  const auto temperatures = [&](const torch::Tensor& q_TD) {
    PooledTokens queries(bands, 64, 64, Tail::exact), keys(bands, 64, 64, Tail::exact);
    queries.append(q_TD);
    keys.append(k);
    return std::array{band_temperature(queries.blocks(), 8, keys.blocks(), 8, 0),
                      band_temperature(queries.blocks(), 8, keys.blocks(), 8, 1)};
  };
  const auto once = temperatures(q);
  for (const double factor : {0.125, 16.0})  // powers of two do not change the rounding
    EXPECT_EQ(temperatures(q * factor), once);
  EXPECT_NE(temperatures(q * torch::arange(1, 65)), once);
}

TEST(SpectralAttention, GivesTheGoldenOutput) {
  const GoldenInput golden(22, 1, 1024, 64, 64);
  const auto whole = [](const std::vector<float>& values) { return torch::tensor(values).view({1, 1, 1024, 64}); };
  const SelectorInput input{.q_BTHD = whole(golden.q).transpose(1, 2),
                            .k_BGSD = whole(golden.k),
                            .q_lengths_B = {},
                            .kv_lengths_B = {},
                            .pairs = half_split_pairs(64, std::vector<double>(32, 1.0))};
  const auto selector = make_spectral_selector({.p = 0.6,
                                                .high_dims = 32,
                                                .low_dims = 48,
                                                .calibration = "all_blocks",
                                                .recent = 1,
                                                .last_dense = 0,
                                                .blocks = {.block_size = 64}});
  const auto mask = selector->select(input, *selector->make_state(input));
  EXPECT_EQ(mask.counts_BHM.sum().item<int64_t>(), 82);
  const auto kept = kept_blocks(mask, 16).to(torch::kByte).contiguous();
  Fnv fnv;
  for (int64_t i = 0; i < kept.numel(); ++i) fnv.add(kept.const_data_ptr<uint8_t>()[i]);
  EXPECT_EQ(fnv.hash(), 0x02ffd3b1a5cff199u);
  for (const auto type : {torch::kFloat, torch::kBFloat16}) {
    AttentionInput attention;
    attention.q_BTHD = input.q_BTHD.to(type);
    attention.kv = {input.k_BGSD.to(type), whole(golden.v).to(type), {}};
    attention.block_mask = mask;
    const auto out = attend(attention).out_BTHE.to(torch::kDouble);
    const double tolerance = type == torch::kFloat ? 1e-4 : 2e-2;
    const double expected[] = {.424083, -.398302, .269930};
    int i = 0;
    for (const int64_t feature : {0, 1, 63})
      EXPECT_NEAR(out[0][1023][0][feature].item<double>(), expected[i++], tolerance);
    if (type == torch::kFloat) {
      EXPECT_NEAR(out.sum().item<double>(), 477.9593, 1e-2);
      EXPECT_NEAR(out.square().sum().item<double>(), 9088.141, 1e-1);
    }
  }
}

}  // namespace
}  // namespace prism
