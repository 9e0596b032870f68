// Synthetic heads have their attention where it was placed, and selectors find it there.
#include "prism/bench/synthetic_heads.h"
#include "prism/sparse/methods/pooled/bands.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cmath>

#include "prism/core/error.h"
#include "prism/sparse/exact_mass.h"
#include "prism/sparse/mask_statistics.h"
#include "prism/sparse/selectors.h"

namespace prism {
namespace {

constexpr int64_t kHeadTokens = 2048, kHeadBlock = 64;

SyntheticMix mix_of(const SyntheticHead& pattern) {
  return {.seed = 3, .head_dim = 128, .kv_heads = 1, .base = 1e6, .noise = 0.5, .heads = {pattern}};
}

SelectorInput input_of(const SyntheticHeads& heads) {
  return {.q_BTHD = heads.q_BTHD, .k_BGSD = heads.k_BGSD, .q_lengths_B = {}, .kv_lengths_B = {}, .pairs = heads.pairs};
}

/// Attention weights of query t, float64. [t + 1]
torch::Tensor attention_of(const SyntheticHeads& heads, int64_t t) {
  const auto keys = heads.k_BGSD[0][0].narrow(0, 0, t + 1).to(torch::kDouble);
  return (at::mv(keys, heads.q_BTHD[0][t][0].to(torch::kDouble)) / std::sqrt(128.0)).softmax(0);
}

TEST(SyntheticHeads, LookWhereTheyWereToldTo) {
  const auto slash = make_synthetic_heads(mix_of({.slashes = {{300, 20}}}), kHeadTokens, torch::kFloat);
  for (const int64_t t : {400, 1000, 2047}) {
    const auto shares = attention_of(slash, t);
    EXPECT_NEAR(static_cast<double>(shares.argmax().item<int64_t>()), static_cast<double>(t - 300), 2) << t;
    EXPECT_GT(shares.narrow(0, t - 310, 20).sum().item<double>(), 0.9) << t;
  }
  const auto sink = make_synthetic_heads(mix_of({.sink = 16}), kHeadTokens, torch::kFloat);
  EXPECT_GT(attention_of(sink, 2000).narrow(0, 0, 4).sum().item<double>(), 0.9);
  const auto none = make_synthetic_heads(mix_of({}), kHeadTokens, torch::kFloat);
  EXPECT_LT(attention_of(none, 2000).max().item<double>(), 0.2);
  const auto needle = make_synthetic_heads(mix_of({.needle = 20, .needles = 1}), kHeadTokens, torch::kFloat);
  double most = 0;
  for (int64_t t = 0; t < kHeadTokens; t += 64) most = std::max(most, attention_of(needle, t).max().item<double>());
  EXPECT_GT(most, 0.9);
}

TEST(SyntheticHeads, AreTheSameForASeed) {
  auto mix = mix_of({.sink = 10, .needle = 15, .needles = 3, .slashes = {{0, 12}, {500, 15}}});
  const auto once = make_synthetic_heads(mix, 500, torch::kBFloat16),
             again = make_synthetic_heads(mix, 500, torch::kBFloat16);
  EXPECT_TRUE(at::equal(once.q_BTHD, again.q_BTHD));
  EXPECT_TRUE(at::equal(once.k_BGSD, again.k_BGSD));
  mix.seed = 4;
  EXPECT_FALSE(at::equal(once.k_BGSD, make_synthetic_heads(mix, 500, torch::kBFloat16).k_BGSD));
}

/// Blocks that a selector keeps of the first sequence's only head.
torch::Tensor kept_of(const std::string& name, Json settings, const SyntheticHeads& heads) {
  settings["block_size"] = kHeadBlock;
  const auto input = input_of(heads);
  const auto selector = find_selector(name, settings);
  return kept_blocks(input, selector->select(input, *selector->make_state(input)))[0][0];
}

/// Share of the rows that keep the block `distance` before the row's middle query.
double slash_kept(const torch::Tensor& kept_MN, int64_t distance) {
  int64_t rows = 0, held = 0;
  for (int64_t m = (distance + kHeadBlock) / kHeadBlock; m < kept_MN.size(0); ++m) {
    ++rows;
    held += kept_MN[m][(m * kHeadBlock + kHeadBlock / 2 - distance) / kHeadBlock].item<bool>();
  }
  return static_cast<double>(held) / static_cast<double>(rows);
}

TEST(SyntheticHeads, LookAsFarInALongPrompt) {
  // 128k tokens and a base with slow pairs: the sink keeps its score up to the end.
  const SyntheticMix mix{.seed = 1, .head_dim = 128, .kv_heads = 1, .base = 1e6, .noise = 0, .heads = {{.sink = 19}}};
  const auto heads = make_synthetic_heads(mix, 131072, torch::kFloat);
  for (const int64_t t : {100, 60000, 131071}) {
    const auto q = heads.q_BTHD[0][t][0], k = heads.k_BGSD[0][0][2];
    EXPECT_NEAR(q.dot(k).item<double>() / std::sqrt(128.0), 19, 0.13 * 19) << t;  // 1 - cos(0.5) and less
  }
  EXPECT_THROW(make_synthetic_heads({.seed = 1, .head_dim = 128, .kv_heads = 1, .base = 1e4, .heads = {{.sink = 19}}},
                                    131072, torch::kFloat),
               InputError);
}

TEST(SpectralOnKnownHeads, KeepsASlashThatMeanPoolingMisses) {
  // After pooling, the rest of the fast pairs shows where the slash is. The topics have higher pooled scores but
  // receive little attention.
  const auto heads = make_synthetic_heads(mix_of({.topic = 9, .slashes = {{700, 20}}}), kHeadTokens, torch::kFloat);
  const auto density = [&](const torch::Tensor& kept) {
    return kept.sum().item<double>() / visible_blocks(input_of(heads), kHeadBlock, kHeadBlock).sum().item<double>();
  };
  const auto spectral = kept_of("spectral", {{"p", 0.8}, {"recent", 1}, {"last_dense", 0}}, heads);
  EXPECT_GE(slash_kept(spectral, 700), 0.95);
  // Mean pooling at up to the same density.
  int compared = 0;
  for (const double p : {0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99}) {
    const auto pooled = kept_of("mean_pooling", {{"p", p}}, heads);
    if (density(pooled) > density(spectral)) break;
    ++compared;
    EXPECT_LT(slash_kept(pooled, 700), 0.95) << p << ", density " << density(pooled) << " of " << density(spectral);
  }
  EXPECT_GT(compared, 0);
  // The slow pairs alone do not show where it is either.
  const auto low = paper_bands(heads.pairs)[1].features;
  const auto slow = torch::tensor(low, torch::kLong);
  auto input = input_of(heads);
  input.q_BTHD = input.q_BTHD.index_select(3, slow);
  input.k_BGSD = input.k_BGSD.index_select(3, slow);
  input.pairs = half_split_pairs(static_cast<int64_t>(low.size()), {});
  const auto selector = find_selector("mean_pooling", {{"p", 0.8}, {"block_size", kHeadBlock}});
  const auto by_slow = kept_blocks(input, selector->select(input, *selector->make_state(input)))[0][0];
  EXPECT_LT(slash_kept(by_slow, 700), 0.95) << "density " << density(by_slow);
}

TEST(SpectralOnKnownHeads, KeepsANeedle) {
  const auto heads =
      make_synthetic_heads(mix_of({.needle = 16, .needles = 3, .slashes = {{0, 15}}}), kHeadTokens, torch::kFloat);
  const auto input = input_of(heads);
  const auto selector = find_selector("spectral", {{"p", 0.8}, {"recent", 1}, {"block_size", kHeadBlock}});
  const auto kept = kept_blocks(input, selector->select(input, *selector->make_state(input)))[0][0];
  const auto head = head_input(input, SelectorLengths(input), 0, 0, kHeadBlock, kHeadBlock);
  int64_t needles = 0;
  for (int64_t m = 0; m < head.rows(); ++m) {
    const auto mass = exact_mass(head, m).mean(0);
    for (int64_t v = 0; v + 2 < m; ++v) {
      if (mass[v].item<double>() < 0.5) continue;  // skip blocks with less than half of the row's attention
      ++needles;
      EXPECT_TRUE(kept[m][v].item<bool>()) << "row " << m << ", block " << v;
    }
  }
  EXPECT_GT(needles, 0);
  EXPECT_LT(measure_mask(input, selector->select(input, *selector->make_state(input)), 0)[0].density(), 0.7)
      << "keeping all blocks keeps every needle";
}

TEST(SpectralOnKnownHeads, KeepsSinkAndWindowAndRisesToTheShareWithoutStructure) {
  const auto sink = make_synthetic_heads(mix_of({.sink = 16, .slashes = {{0, 14}}}), kHeadTokens, torch::kFloat);
  const auto input = input_of(sink);
  const auto selector = find_selector("spectral", {{"p", 0.9}, {"block_size", kHeadBlock}});
  const auto found = measure_mask(input, selector->select(input, *selector->make_state(input)), kAllRows)[0];
  EXPECT_GT(found.recall(), 0.95);
  EXPECT_LT(found.density(), 0.7);
  const auto none = input_of(make_synthetic_heads(mix_of({}), kHeadTokens, torch::kFloat));
  const auto all = measure_mask(none, selector->select(none, *selector->make_state(none)), 0)[0];
  EXPECT_GT(all.density(), 0.8);
  EXPECT_LT(all.density(), 1);
}

TEST(SyntheticHeadsInput, ThatIsWrongGetsASentence) {
  EXPECT_THROW(make_synthetic_heads({}, 10, torch::kFloat), InputError);
  auto mix = mix_of({});
  mix.head_dim = 24;
  EXPECT_THROW(make_synthetic_heads(mix, 10, torch::kFloat), InputError);
  mix = mix_of({});
  mix.kv_heads = 2;
  EXPECT_THROW(make_synthetic_heads(mix, 10, torch::kFloat), InputError);
  EXPECT_THROW(make_synthetic_heads(mix_of({}), 0, torch::kFloat), InputError);
}

}  // namespace
}  // namespace prism
