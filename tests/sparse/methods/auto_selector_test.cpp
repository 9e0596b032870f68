// The auto selector's choice between sparse and dense for given costs.
#include "prism/sparse/methods/auto_selector.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <limits>
#include <utility>

#include "prism/bench/synthetic_heads.h"
#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "prism/sparse/mask_statistics.h"
#include "prism/sparse/selectors.h"
#include "tests/core/message_of.h"

namespace prism {
namespace {

constexpr int64_t kTokens = 2048;

/// One head that attends to the first and the nearest keys, and one that attends to everything.
SelectorInput make_input() {
  static const auto heads = make_synthetic_heads({.seed = 1,
                                                  .head_dim = 64,
                                                  .kv_heads = 2,
                                                  .base = 1e6,
                                                  .noise = 0.5,
                                                  .heads = {{.sink = 16, .slashes = {{0, 16}}}, {}}},
                                                 kTokens, torch::kFloat);
  return {.q_BTHD = heads.q_BTHD, .k_BGSD = heads.k_BGSD, .q_lengths_B = {}, .kv_lengths_B = {}, .pairs = heads.pairs};
}

const SpectralOptions kSpectral = {.p = 0.9, .recent = 1, .last_dense = 0, .blocks = {.block_size = 64}};

/// Costs for the shape of make_input().
PrefillCosts table(const PrefillCost& cost) {
  return {{{.type = torch::kFloat, .head_dim = 64, .query_block = 64, .key_block = 64}, cost}};
}

BlockMask select_with(const PrefillCost& cost, const SelectorInput& input) {
  const auto selector = make_auto_selector({.spectral = kSpectral}, table(cost));
  return selector->select(input, *selector->make_state(input));
}

BlockMask spectral_mask(const SelectorInput& input) {
  const auto selector = make_spectral_selector(kSpectral);
  return selector->select(input, *selector->make_state(input));
}

TEST(AutoSelector, IsDenseWhereChoosingTakesTooLong) {
  const PrefillCost cost{.dense_pair = 1e-9, .sparse_pair = 1e-12, .select_token = 1};
  EXPECT_FALSE(select_with(cost, make_input()).defined());
}

TEST(AutoSelector, IsSpectralWhereThatIsCheap) {
  const PrefillCost cost{.dense_pair = 1e-9, .sparse_pair = 1e-12};
  const auto input = make_input();
  EXPECT_TRUE(at::equal(kept_blocks(input, select_with(cost, input)), kept_blocks(input, spectral_mask(input))));
}

TEST(AutoSelector, IsDenseWhereNoHeadGains) {
  EXPECT_FALSE(select_with({.dense_pair = 1e-9, .sparse_pair = 1e-6}, make_input()).defined());
  EXPECT_FALSE(select_with({.dense_pair = 1e-9, .sparse_pair = 0, .sparse_row = 1}, make_input()).defined());
}

TEST(AutoSelector, WeighsWhatAllHeadsKeepTogether) {
  const auto input = make_input();
  const auto heads = measure_mask(input, spectral_mask(input), 0);
  ASSERT_LT(heads[0].density(), 0.5);
  ASSERT_GT(heads[1].density(), 0.6);
  const double density = (heads[0].density() + heads[1].density()) / 2;
  // A kept pair may cost about 1 / density times a dense pair.
  EXPECT_TRUE(select_with({.dense_pair = 1e-9, .sparse_pair = 0.9e-9 / density}, input).defined());
  EXPECT_FALSE(select_with({.dense_pair = 1e-9, .sparse_pair = 1.1e-9 / density}, input).defined());
}

/// Whether auto chooses blocks for a chunk, the queries from `first` on, if the blocks that spectral keeps take 0.9 of
/// the time that it accepts, and these and choosing, counted twice, `share` of it.
bool is_sparse(const SpectralOptions& spectral, double share, int64_t first = 0, int64_t prompt_length = 0) {
  auto input = make_input();
  input.q_BTHD = input.q_BTHD.narrow(1, first, kTokens - first);
  input.prompt_length = prompt_length;
  const SelectorLengths lengths(input);
  const auto exact = make_spectral_selector(spectral);
  const auto kept = kept_work(lengths, exact->select(input, *exact->make_state(input)));
  const double pairs = 2.0 * static_cast<double>(lengths.blocks(0, 64, 64).seen_pairs());  // of two heads
  const double accepted = 0.97e-9 * pairs;
  const PrefillCost costs{
      .dense_pair = 1e-9, .sparse_pair = 0.9 * accepted / kept.pairs, .select_call = (share - 0.9) * accepted / 2};
  const auto selector = make_auto_selector({.overhead = 0.5, .spectral = spectral}, table(costs));
  return selector->select(input, *selector->make_state(input)).defined();
}

TEST(AutoSelector, WeighsRowsThatAreAlwaysDense) {
  auto spectral = kSpectral;
  for (const int64_t last_dense : {0, 2, 3, 8, 28, 31}) {
    spectral.last_dense = last_dense;
    EXPECT_TRUE(is_sparse(spectral, 0.96)) << last_dense;
    EXPECT_FALSE(is_sparse(spectral, 1.04)) << last_dense;
  }
  spectral.last_dense = 3;
  for (const auto& [first, length] : {std::pair<int64_t, int64_t>{1024, 0}, {1000, 0}, {1024, 4096}, {1000, 2100}}) {
    EXPECT_TRUE(is_sparse(spectral, 0.96, first, length)) << first << " " << length;
    EXPECT_FALSE(is_sparse(spectral, 1.04, first, length)) << first << " " << length;
  }
}

TEST(AutoSelector, IsDenseWhereEveryRowIs) {
  auto spectral = kSpectral;
  for (const int64_t last_dense : {int64_t{32}, int64_t{33}, std::numeric_limits<int64_t>::max()}) {
    spectral.last_dense = last_dense;
    const auto selector = make_auto_selector({.spectral = spectral}, table({.dense_pair = 1e-9, .sparse_pair = 1e-12}));
    EXPECT_FALSE(selector->select(make_input(), *selector->make_state(make_input())).defined()) << last_dense;
  }
}

TEST(AutoSelector, WeighsHowFragmentedTheKeptBlocksAre) {
  const auto input = make_input();
  const auto kept = kept_work(SelectorLengths(input), spectral_mask(input));
  const double rows = 2.0 * kTokens / 64, pairs = 1.0 * kTokens * (kTokens + 1);  // of two heads
  ASSERT_GT(kept.runs, rows) << "some rows have more than one run";
  const double spare = 0.97e-9 * pairs - 1e-12 * kept.pairs;  // what runs may cost
  EXPECT_TRUE(
      select_with({.dense_pair = 1e-9, .sparse_pair = 1e-12, .sparse_run = 0.9 * spare / kept.runs}, input).defined());
  EXPECT_FALSE(
      select_with({.dense_pair = 1e-9, .sparse_pair = 1e-12, .sparse_run = 1.1 * spare / kept.runs}, input).defined());
}

TEST(AutoSelector, IsDenseWhereAttentionCouldLeaveNothingOut) {
  auto input = make_input();
  ASSERT_TRUE(select_with({.dense_pair = 1e-9, .sparse_pair = 1e-12}, input).defined());
  input.q_BTHD = input.q_BTHD.to(torch::kDouble);
  input.k_BGSD = input.k_BGSD.to(torch::kDouble);
  EXPECT_FALSE(select_with({.dense_pair = 1e-9, .sparse_pair = 1e-12}, input).defined());
}

TEST(AutoSelector, DecidesByTheTableAlone) {
  const auto input = make_input();
  const Json settings = {{"p", 0.9}, {"block_size", 64}};
  const auto mask_with = [&](const PrefillCost& cost) {
    const auto selector = find_selector("auto", settings, table(cost));
    return selector->select(input, *selector->make_state(input));
  };
  const PrefillCost cheap{.dense_pair = 1e-9, .sparse_pair = 1e-12}, dear{.dense_pair = 1e-9, .sparse_pair = 1e-6};
  const auto first = mask_with(cheap), again = mask_with(cheap);
  ASSERT_TRUE(first.defined());
  EXPECT_TRUE(at::equal(first.counts_BHM, again.counts_BHM));
  EXPECT_TRUE(at::equal(first.indices_BHMN, again.indices_BHMN));
  EXPECT_FALSE(mask_with(dear).defined());
}

TEST(AutoSelector, IsDenseWithoutCostsAndSaysSoOnce) {
  const auto input = make_input();
  const auto selector = find_selector("auto", {{"p", 0.9}, {"block_size", 32}}, table({.dense_pair = 1e-9}));
  const auto state = selector->make_state(input);
  EXPECT_TRUE(selector->notes().empty());
  for (int call = 0; call < 3; ++call) EXPECT_FALSE(selector->select(input, *state).defined());
  ASSERT_EQ(selector->notes().size(), 1u);
  for (const char* words : {"auto", "64 wide", "32 x 32", "dense"}) EXPECT_CONTAINS(selector->notes()[0], words);
}

TEST(AutoSelector, NamesTheShapeWhoseCostItNeeds) {
  const PrefillShape expected{.type = torch::kBFloat16, .head_dim = 96, .query_block = 64, .key_block = 32};
  EXPECT_EQ(cost_shape("auto", {{"block_size", 64}, {"key_block", 32}}, torch::kBFloat16, 96), expected);
  EXPECT_FALSE(cost_shape("spectral", Json::object(), torch::kBFloat16, 96).has_value());
  EXPECT_THROW(cost_shape("auto", {{"no_such_field", 1}}, torch::kBFloat16, 96), InputError);
}

TEST(AutoSelector, AsksAFewRowsBeforeItAsksAll) {
  // Selecting for all rows costs 1/20 of dense attention; pooling the keys and sampling 4 rows of 32 less than 1/50.
  const double pairs = 4.0 * kTokens * kTokens;
  const PrefillCost cost{.dense_pair = 1e-9, .sparse_pair = 1e-9, .select_token = 0.05 * pairs * 1e-9 / (4 * kTokens)};
  auto input = make_input();
  const auto ask = [&](double overhead) {
    const auto selector = make_auto_selector({.overhead = overhead, .spectral = kSpectral}, table(cost));
    return selector->select(input, *selector->make_state(input));
  };
  EXPECT_FALSE(ask(0.01).defined());
  EXPECT_TRUE(ask(0.5).defined());
}

TEST(AutoSelector, GoesOnFromChunkToChunk) {
  const PrefillCost cost{.dense_pair = 1e-9, .sparse_pair = 1e-12};
  const auto input = make_input();
  const auto whole = kept_blocks(input, spectral_mask(input));
  const auto selector = make_auto_selector({.spectral = kSpectral}, table(cost));
  const auto state = selector->make_state(input);
  for (const int64_t first : {0, 512, 1024, 1536}) {
    if (first == 1024) state->truncate(512);  // then repeat from there
    for (int64_t begin = first == 1024 ? 512 : first; begin <= first; begin += 512) {
      auto chunk = input;
      chunk.q_BTHD = input.q_BTHD.narrow(1, begin, 512);
      chunk.k_BGSD = input.k_BGSD.narrow(2, 0, begin + 512);
      const auto kept = kept_blocks(chunk, selector->select(chunk, *state));
      EXPECT_TRUE(at::equal(kept, whole.narrow(2, begin / 64, 8).narrow(3, 0, kept.size(3)))) << begin;
    }
  }
}

TEST(KeptWork, CountsThePairsThatQueriesSee) {
  // Queries 100 to 299 in rows of 64, keys 0 to 299 in blocks of 32: row 0 holds 100 to 127.
  const HeadBlocks blocks{200, 300, 64, 32};
  const auto count = [&](int64_t row, std::vector<int32_t> kept) { return kept_work(blocks, row, kept).pairs; };
  EXPECT_EQ(count(0, {0}), 28 * 32);
  EXPECT_EQ(count(0, {3}), 28 * 29 / 2 + 28 * 4);  // keys 96 to 127
  EXPECT_EQ(count(1, {0, 4, 5}), 64 * 32 + (32 * 33 / 2 + 32 * 32) + 32 * 33 / 2);
  EXPECT_EQ(count(3, {9}), 12 * 13 / 2);  // queries 256 to 299, keys 288 to 299
}

TEST(KeptWork, CountsRunsOfNeighbouringBlocks) {
  const HeadBlocks blocks{200, 300, 64, 32};
  const auto runs = [&](std::vector<int32_t> kept) { return kept_work(blocks, 3, kept).runs; };
  EXPECT_EQ(runs({}), 0);
  EXPECT_EQ(runs({0}), 1);
  EXPECT_EQ(runs({0, 1, 2, 7}), 2);
  EXPECT_EQ(runs({1, 3, 5, 7}), 4);
  const SelectorInput input{.q_BTHD = torch::zeros({1, 128, 2, 8}),
                            .k_BGSD = torch::zeros({1, 1, 128, 8}),
                            .q_lengths_B = {},
                            .kv_lengths_B = {},
                            .pairs = half_split_pairs(8, std::vector<double>(4, 1))};
  const auto mask = make_block_mask({{0}, {0, 1}, {0}, {1}}, 1, 2, 64, 64);
  EXPECT_EQ(kept_work(SelectorLengths(input), mask).runs, 4) << "blocks 0 and 1 of the first head's second row are one";
}

TEST(AutoSelectorInput, ThatIsWrongGetsASentence) {
  EXPECT_THROW(make_auto_selector({.overhead = 0}), InputError);
  EXPECT_THROW(make_auto_selector({.spectral = {.p = 0}}), InputError);
}

}  // namespace
}  // namespace prism
