// The spectral selector against golden masks of an independent implementation in double precision, and properties of it
// and of mean pooling that hold for any input.
#include "prism/sparse/methods/pooled/spectral.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <vector>

#include "prism/core/error.h"
#include "prism/sparse/methods/pooled/mean_pooling.h"
#include "tests/sparse/golden_input.h"

namespace prism {
namespace {

using torch::Tensor;

RotaryPairs half_split(int64_t width) {
  return half_split_pairs(width, std::vector<double>(static_cast<size_t>(width / 2), 1.0));
}

BlockMask select(const SpectralOptions& options, const SelectorInput& input) {
  const auto selector = make_spectral_selector(options);
  return selector->select(input, *selector->make_state(input));
}

/// Converts [H, L, D] to queries [1, T, H, D] and keys [1, H, S, D].
SelectorInput input_of(const GoldenInput& golden, int64_t heads, int64_t tokens, int64_t width, int64_t queries) {
  const auto whole = [&](const std::vector<float>& values) {
    return torch::tensor(values).view({1, heads, tokens, width});
  };
  return {.q_BTHD = whole(golden.q).narrow(2, tokens - queries, queries).transpose(1, 2),
          .k_BGSD = whole(golden.k),
          .q_lengths_B = {},
          .kv_lengths_B = {},
          .pairs = half_split(width)};
}

struct Golden {
  uint64_t seed;
  int64_t tokens, width, block;
  double p_high, p_low;
  const char *calibration, *tail;
  int64_t queries;  ///< number of last tokens that are queries
  std::vector<int64_t> counts;
  uint64_t hash;
};

TEST(Spectral, EqualsTheGoldenMasks) {
  const Golden goldens[] = {
      {1, 2048, 128, 128, .95, .95, "all_blocks", "padded", 2048, {131, 133}, 0xe9be7c32807a0007},
      {1, 2048, 128, 128, .60, .60, "all_blocks", "padded", 2048, {63, 72}, 0x4ca248041d8d34ac},
      {4, 2048, 128, 128, .80, .80, "all_blocks", "padded", 2048, {100, 105}, 0xa2441cfc30a490d4},
      {4, 2048, 128, 128, .80, .80, "off", "padded", 2048, {115, 115}, 0x68c0147008375153},
      {4, 2048, 128, 128, .90, .70, "all_blocks", "exact", 2048, {108, 119}, 0xe11257b135d4b41c},
      {7, 1930, 128, 128, .90, .90, "all_blocks", "padded", 1930, {124, 133}, 0x9f8cb0e0a618f1f6},
      {7, 1930, 128, 128, .90, .90, "all_blocks", "exact", 1930, {119, 130}, 0x1f0b18a86dd40324},
      {9, 2048, 64, 64, .90, .90, "all_blocks", "padded", 512, {213, 221}, 0x18e15b463eecfd91},
  };
  constexpr int64_t kHeads = 2;
  for (const auto& g : goldens) {
    SCOPED_TRACE(testing::Message() << "seed " << g.seed << " p " << g.p_high << " " << g.tail);
    const GoldenInput golden(g.seed, kHeads, g.tokens, g.width, g.block);
    const auto mask = select({.p_high = g.p_high,
                              .p_low = g.p_low,
                              .calibration = g.calibration,
                              .tail = g.tail,
                              .recent = 1,
                              .last_dense = 0,
                              .blocks = {.block_size = g.block}},
                             input_of(golden, kHeads, g.tokens, g.width, g.queries));
    const Tensor kept = kept_blocks(mask, (g.tokens + g.block - 1) / g.block).to(torch::kByte).contiguous();
    Fnv fnv;
    for (int64_t i = 0; i < kept.numel(); ++i) fnv.add(kept.const_data_ptr<uint8_t>()[i]);
    for (int64_t h = 0; h < kHeads; ++h)
      EXPECT_EQ(mask.counts_BHM[0][h].sum().item<int64_t>(), g.counts[static_cast<size_t>(h)]);
    EXPECT_EQ(fnv.hash(), g.hash) << std::hex << fnv.hash();
  }
}

TEST(Spectral, OfSlicesInsteadOfPairsWouldBeAnotherMask) {
  // Features 2 j and 2 j + 1 of vectors whose pairs are half a head apart: [0, 64) and [32, 128) as bands.
  const GoldenInput golden(1, 2, 2048, 128, 128);
  auto input = input_of(golden, 2, 2048, 128, 2048);
  input.pairs = interleaved_pairs(128, input.pairs.angles);
  const auto mask =
      select({.p_high = .95, .p_low = .95, .calibration = "all_blocks", .tail = "padded", .recent = 1, .last_dense = 0},
             input);
  EXPECT_EQ(mask.counts_BHM[0][0].sum().item<int64_t>(), 128);
  EXPECT_EQ(mask.counts_BHM[0][1].sum().item<int64_t>(), 132);
  const Tensor kept = kept_blocks(mask, 16).to(torch::kByte).contiguous();
  Fnv fnv;
  for (int64_t i = 0; i < kept.numel(); ++i) fnv.add(kept.const_data_ptr<uint8_t>()[i]);
  EXPECT_EQ(fnv.hash(), 0x56b994dda7c1293du);
}

/// Two sequences, four query heads on two key heads, 64 wide.
SelectorInput random_input(int64_t tokens) {
  torch::manual_seed(1);
  const auto centres = 2 * torch::randn({2, 6, 64});
  const auto blocks =
      torch::randint(6, {2, (tokens + 31) / 32}, torch::kLong).repeat_interleave(32, 1).narrow(1, 0, tokens);
  const auto around = [&](int64_t heads) {
    const auto own = torch::stack({centres[0].index_select(0, blocks[0]), centres[1].index_select(0, blocks[1])});
    return own.unsqueeze(1) + torch::randn({2, heads, tokens, 64});
  };
  return {.q_BTHD = around(4).transpose(1, 2),
          .k_BGSD = around(2),
          .q_lengths_B = {},
          .kv_lengths_B = {},
          .pairs = half_split(64)};
}

Tensor kept_of(const SpectralOptions& options, const SelectorInput& input) {
  return kept_blocks(select(options, input),
                     (input.k_BGSD.size(2) + options.blocks.keys() - 1) / options.blocks.keys());
}

constexpr const char* kCalibrations[] = {"off", "all_blocks", "causal_running"};

TEST(Spectral, KeepsWhatIsForcedAndNothingThatNoQuerySees) {
  const auto input = random_input(700);
  for (const int64_t query_block : {32, 128}) {
    for (const int64_t key_block : {32, 64, 256}) {
      const SpectralOptions options{
          .p_high = 0.05, .p_low = 0.05, .recent = 3, .blocks = {.query_block = query_block, .key_block = key_block}};
      const auto kept = kept_of(options, input);
      for (int64_t m = 0; m < kept.size(2); ++m) {
        const int64_t first = m * query_block, last = std::min<int64_t>(first + query_block, 700) - 1;
        EXPECT_TRUE(kept.select(2, m).select(2, 0).all().item<bool>());
        const int64_t recent = std::max<int64_t>(0, first / key_block - 2);
        EXPECT_TRUE(kept.select(2, m).slice(2, recent, last / key_block + 1).all().item<bool>());
        EXPECT_FALSE(kept.select(2, m).slice(2, last / key_block + 1).any().item<bool>());
      }
    }
  }
}

TEST(Spectral, KeepsAllBlocksForTheLastTwoRowsOfAPromptUnlessToldOtherwise) {
  auto input = random_input(900);
  const SpectralOptions options{.p = 0.05, .blocks = {.block_size = 64}};
  const auto all_of = [](const Tensor& kept, int64_t row) {
    return kept.select(2, row).slice(2, 0, row + 1).all().item<bool>();
  };
  const auto kept = kept_of(options, input);
  EXPECT_TRUE(all_of(kept, 14) && all_of(kept, 13));
  EXPECT_FALSE(all_of(kept, 12));
  auto none = options;
  none.last_dense = 0;
  EXPECT_FALSE(all_of(kept_of(none, input), 14));
  input.prompt_length = 2000;  // other chunks follow
  EXPECT_TRUE(at::equal(kept_of(options, input), kept_of(none, input)));
}

TEST(Spectral, KeepsMoreForALargerShareAndAllForOne) {
  const auto input = random_input(1500);
  for (const char* calibration : kCalibrations) {
    Tensor smaller;
    for (const double p : {0.3, 0.6, 0.9, 1.0}) {
      const auto kept =
          kept_of({.p_high = p, .p_low = p, .calibration = calibration, .blocks = {.block_size = 64}}, input);
      if (smaller.defined()) {
        EXPECT_TRUE(smaller.logical_and(kept).eq(smaller).all().item<bool>());
        EXPECT_GT(kept.sum().item<int64_t>(), smaller.sum().item<int64_t>());
      }
      smaller = kept;
    }
    EXPECT_TRUE(at::equal(smaller, smaller.new_ones({24, 24}).tril().expand_as(smaller)));
  }
}

TEST(Spectral, FollowsTheHeadsWhereverTheyStandAndTheLayoutOfTheirPairs) {
  auto input = random_input(900);
  const SpectralOptions options{.p_high = 0.7, .p_low = 0.7, .blocks = {.block_size = 64}};
  const auto kept = kept_of(options, input);
  auto swapped = input;
  swapped.q_BTHD = input.q_BTHD.flip(2);
  swapped.k_BGSD = input.k_BGSD.flip(1);
  EXPECT_TRUE(at::equal(kept_of(options, swapped), kept.flip(1)));
  // Interleaves feature j of the first half with that of the second.
  auto interleaved = input;
  const auto reorder = [](const Tensor& x) {
    return x.unflatten(-1, {2, 32}).transpose(-1, -2).flatten(-2).contiguous();
  };
  interleaved.q_BTHD = reorder(input.q_BTHD);
  interleaved.k_BGSD = reorder(input.k_BGSD);
  interleaved.pairs = interleaved_pairs(64, input.pairs.angles);
  EXPECT_TRUE(at::equal(kept_of(options, interleaved), kept));
  interleaved.pairs = input.pairs;
  EXPECT_FALSE(at::equal(kept_of(options, interleaved), kept)) << "the layout must matter";
}

TEST(Spectral, ScalesCalibratedScoresWithTheQueriesAndGivesEqualHeadsEqualMasks) {
  auto input = random_input(900);
  // tau consists of ratios, so doubled queries have doubled logits, and fewer blocks hold the same share.
  const SpectralOptions options{.p_high = 0.9, .p_low = 0.9, .calibration = "all_blocks", .blocks = {.block_size = 64}};
  auto sharper = input;
  sharper.q_BTHD = 8 * input.q_BTHD;
  EXPECT_LT(kept_of(options, sharper).sum().item<int64_t>(), kept_of(options, input).sum().item<int64_t>());
  // Repeats each key/value head's queries.
  const int64_t groups = input.k_BGSD.size(1), heads = input.heads();
  auto doubled = input;
  doubled.q_BTHD = input.q_BTHD.unflatten(2, {groups, heads / groups}).repeat({1, 1, 1, 2, 1}).flatten(2, 3);
  const auto once = kept_of(options, input).unflatten(1, {groups, heads / groups});
  const auto twice = kept_of(options, doubled).unflatten(1, {groups, 2, heads / groups});
  for (const int64_t copy : {0, 1}) EXPECT_TRUE(at::equal(twice.select(2, copy), once)) << copy;
}

/// Selectors that choose the same however a prompt is cut into whole blocks, which have 64 tokens.
std::vector<std::unique_ptr<Selector>> steady_selectors() {
  std::vector<std::unique_ptr<Selector>> selectors;
  for (const char* calibration : {"off", "causal_running"})
    selectors.push_back(make_spectral_selector(
        {.p = 0.8, .calibration = calibration, .recent = 1, .last_dense = 0, .blocks = {.block_size = 64}}));
  selectors.push_back(make_mean_pooling_selector({.p = 0.8, .blocks = {.block_size = 64}}));
  return selectors;
}

TEST(PooledSelectors, ChooseTheSameForAPromptInPieces) {
  constexpr int64_t kPrompt = 5000;
  const auto input = random_input(kPrompt);
  for (const auto& selector : steady_selectors()) {
    const auto whole = kept_blocks(selector->select(input, *selector->make_state(input)), (kPrompt + 63) / 64);
    EXPECT_LT(whole.to(torch::kFloat).mean().item<double>(), 0.4) << "half is all";
    for (const int64_t chunk : {64, 128, 1024, 4096}) {
      const auto state = selector->make_state(input);
      for (int64_t first = 0; first < kPrompt; first += chunk) {
        const int64_t count = std::min<int64_t>(chunk, kPrompt - first), keys = first + count;
        auto part = input;
        part.q_BTHD = input.q_BTHD.narrow(1, first, count);
        part.k_BGSD = input.k_BGSD.narrow(2, 0, keys);
        const auto kept = kept_blocks(selector->select(part, *state), (keys + 63) / 64);
        EXPECT_TRUE(at::equal(kept, whole.narrow(2, first / 64, kept.size(2)).narrow(3, 0, kept.size(3))))
            << "chunks of " << chunk << " at " << first;
      }
    }
  }
}

TEST(Spectral, ChoosesForEachSequenceOfABatchAsForItAlone) {
  auto input = random_input(900);
  input.q_lengths_B = input.kv_lengths_B = torch::tensor({130, 777}, torch::kInt);
  const SpectralOptions options{.p_high = 0.8, .p_low = 0.8, .blocks = {.block_size = 64}};
  const auto together = kept_of(options, input);
  for (int64_t b = 0; b < 2; ++b) {
    const int64_t length = input.q_lengths_B[b].item<int64_t>();
    auto alone = input;
    alone.q_BTHD = input.q_BTHD.narrow(0, b, 1).narrow(1, 0, length);
    alone.k_BGSD = input.k_BGSD.narrow(0, b, 1).narrow(2, 0, length);
    alone.q_lengths_B = alone.kv_lengths_B = Tensor();
    const auto kept = kept_of(options, alone);
    EXPECT_TRUE(at::equal(together.narrow(0, b, 1).narrow(2, 0, kept.size(2)).narrow(3, 0, kept.size(3)), kept));
  }
}

TEST(PooledSelectors, GoOnAfterPositionsWereTakenBack) {
  const auto input = random_input(700);
  for (const auto& selector : steady_selectors()) {
    const auto whole = kept_blocks(selector->select(input, *selector->make_state(input)), 11);
    const auto state = selector->make_state(input);
    auto wrong = input;
    wrong.k_BGSD = input.k_BGSD.clone();
    wrong.k_BGSD.slice(2, 400).add_(7);
    selector->select(wrong, *state);
    state->truncate(400);
    auto part = input;
    part.q_BTHD = input.q_BTHD.slice(1, 384);  // the whole blocks before stay
    const auto kept = kept_blocks(selector->select(part, *state), 11);
    EXPECT_TRUE(at::equal(kept, whole.slice(2, 6)));
    EXPECT_THROW(selector->select(part, *state), InputError) << "the same queries again";
  }
}

TEST(Spectral, TakesEqualScoresForABandOfNextToNoEnergy) {
  // The temperature of such a band is about 1e-48, and its scores are about 1e-48, too.
  auto input = random_input(900);
  for (Tensor* x : {&input.q_BTHD, &input.k_BGSD}) {
    *x = x->clone();
    x->slice(3, 0, 16).mul_(1e-24);  // the pairs of the fast band: features j and j + 32
    x->slice(3, 32, 48).mul_(1e-24);
  }
  const SpectralOptions options{.p = 0.5, .low_dims = 32, .recent = 1, .blocks = {.block_size = 64}};
  const auto kept = kept_of(options, input);
  for (int64_t m = 0; m < kept.size(2); ++m)
    EXPECT_TRUE(kept.select(2, m).slice(2, 0, (m + 2) / 2).all().item<bool>()) << "the first half of row " << m;
}

TEST(SpectralInput, ThatIsWrongGetsASentence) {
  EXPECT_THROW(make_spectral_selector({.p = 0}), InputError);
  EXPECT_THROW(make_spectral_selector({.p_low = 1.5}), InputError);
  EXPECT_THROW(make_spectral_selector({.calibration = "some"}), InputError);
  EXPECT_THROW(make_spectral_selector({.blocks = {.block_size = 100}}), InputError);
  const auto input = random_input(100);
  EXPECT_THROW(select({.high_dims = 66}, input), InputError);
  EXPECT_THROW(select({.low_dims = 33}, input), InputError);
  auto wrong = input;
  wrong.pairs = half_split(32);
  EXPECT_THROW(select({}, wrong), InputError);
  wrong = input;
  wrong.k_BGSD = input.k_BGSD.to(torch::kDouble);
  EXPECT_THROW(select({}, wrong), InputError);
}

}  // namespace
}  // namespace prism
