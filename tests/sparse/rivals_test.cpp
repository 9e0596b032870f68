// Other selectors against golden masks of independent implementations.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "prism/core/error.h"
#include "prism/sparse/mask_statistics.h"
#include "prism/sparse/methods/flash_prefill.h"
#include "prism/sparse/methods/flex_prefill.h"
#include "prism/sparse/methods/vertical_slash.h"
#include "prism/sparse/methods/xattention.h"
#include "tests/sparse/golden_input.h"

namespace prism {
namespace {

constexpr int64_t kPromptTokens = 1024, kWidth = 64, kBlock = 64;

SelectorInput input_of(uint64_t seed) {
  const GoldenInput golden(seed, 1, kPromptTokens, kWidth, kBlock);
  return {.q_BTHD = torch::tensor(golden.q).view({1, 1, kPromptTokens, kWidth}).transpose(1, 2),
          .k_BGSD = torch::tensor(golden.k).view({1, 1, kPromptTokens, kWidth}),
          .q_lengths_B = {},
          .kv_lengths_B = {},
          .pairs = half_split_pairs(kWidth, std::vector<double>(kWidth / 2, 1.0))};
}

void expect_golden(const Selector& selector, uint64_t seed, int64_t count, uint64_t hash) {
  const auto input = input_of(seed);
  const auto mask = selector.select(input, *selector.make_state(input));
  const auto kept = kept_blocks(mask, kPromptTokens / kBlock).to(torch::kByte).contiguous();
  Fnv fnv;
  for (int64_t i = 0; i < kept.numel(); ++i) fnv.add(kept.const_data_ptr<uint8_t>()[i]);
  EXPECT_EQ(mask.counts_BHM.sum().item<int64_t>(), count) << "seed " << seed;
  EXPECT_EQ(fnv.hash(), hash) << std::hex << fnv.hash() << " of seed " << std::dec << seed;
}

TEST(XAttention, EqualsTheGoldenMasks) {
  const auto at = [](double threshold) {
    return make_xattention_selector({.stride = 8, .threshold = threshold, .blocks = {.block_size = kBlock}});
  };
  expect_golden(*at(.9), 21, 121, 0xcd7bc5a7e0e409b0);
  expect_golden(*at(.9), 23, 116, 0x7d788524d93f1a79);
  expect_golden(*at(.6), 21, 65, 0x4b1796f4bc64942e);
  expect_golden(*at(.6), 23, 63, 0x3bc0e89c62ae7db6);
}

TEST(FlashPrefill, EqualsTheGoldenMasks) {
  const auto at = [](double alpha) {
    return make_flash_prefill_selector(
        {.alpha = alpha, .sink = 1, .window = 1, .last_dense = 0, .blocks = {.block_size = kBlock}});
  };
  expect_golden(*at(.12), 21, 136, 0xcd73d6eac8e6b645);
  expect_golden(*at(.12), 23, 126, 0x405ad40f354b0da1);
  expect_golden(*at(.5), 21, 56, 0xbd7b1d32891df09b);
  expect_golden(*at(.5), 23, 56, 0x60951cc112c42937);
}

HeadInput head_of(uint64_t seed) {
  const auto input = input_of(seed);
  return head_input(input, SelectorLengths(input), 0, 0, kBlock, kBlock);
}

TEST(FlexPrefill, EqualsTheGoldenMasks) {
  const auto selector =
      make_flex_prefill_selector({.gamma = .9, .tau = .1, .min_budget = kBlock, .blocks = {.block_size = kBlock}});
  EXPECT_NEAR(pooling_divergence(head_of(21)), .10705, 1e-5);
  EXPECT_NEAR(pooling_divergence(head_of(23)), .05087, 1e-5);
  expect_golden(*selector, 21, 88, 0x71f0df16830bd475);
  expect_golden(*selector, 23, 101, 0x4e987d323ef60e4e);
}

TEST(VerticalSlash, ChoosesTheGoldenColumnsAndDistances) {
  const auto [columns, distances] = choose_vertical_slash(head_of(21), {.vertical = 100, .slash = 150});
  const auto hash = [](const std::vector<int64_t>& values) {
    Fnv fnv;
    for (const int64_t value : values) {
      fnv.add(static_cast<uint8_t>(value & 0xFF));
      fnv.add(static_cast<uint8_t>(value >> 8));
    }
    return fnv.hash();
  };
  EXPECT_EQ(hash(columns), 0xb2eb5221211106c9u);
  EXPECT_EQ(hash(distances), 0x480d806bca6629f7u);
}

TEST(VerticalSlash, KeepsEveryBlockThatAColumnOrADistanceTouches) {
  const VerticalSlashOptions options{.vertical = 100, .slash = 150};
  const auto head = head_of(21);
  const auto [columns, distances] = choose_vertical_slash(head, options);
  const auto input = input_of(21);
  const auto selector = make_vertical_slash_selector(options);
  const auto kept = kept_blocks(selector->select(input, *selector->make_state(input)), kPromptTokens / kBlock)[0][0];
  auto expected = at::zeros({kPromptTokens / kBlock, kPromptTokens / kBlock}, torch::kBool);
  for (int64_t t = 0; t < kPromptTokens; ++t) {
    for (const int64_t column : columns)
      if (column / kBlock <= t / kBlock) expected[t / kBlock][column / kBlock] = true;
    for (const int64_t distance : distances)
      if (distance <= t) expected[t / kBlock][(t - distance) / kBlock] = true;
  }
  EXPECT_TRUE(at::equal(kept, expected));
}

TEST(VerticalSlash, SaysHowManyPairsItHoldsBeforeRounding) {
  const HeadBlocks head{200, 300, 64, 64};
  const VerticalSlash pattern{{0, 5, 120, 250}, {0, 1, 90, 130, 295}};
  int64_t held = 0;
  for (int64_t t = 100; t < 300; ++t)
    for (int64_t s = 0; s <= t; ++s) {
      const auto has = [](const std::vector<int64_t>& list, int64_t x) {
        return std::find(list.begin(), list.end(), x) != list.end();
      };
      held += static_cast<int64_t>(has(pattern.columns, s) || has(pattern.distances, t - s));
    }
  EXPECT_EQ(held_pairs(head, pattern), held);
  const auto input = input_of(21);
  const auto selector = make_vertical_slash_selector({.vertical = 40, .slash = 120});
  const auto exact = selector->unrounded_densities(input);
  ASSERT_EQ(exact.size(), 1u);
  EXPECT_GT(exact[0], 0.1);
  const auto mask = selector->select(input, *selector->make_state(input));
  EXPECT_LT(exact[0], measure_mask(input, mask, 0)[0].density());
}

TEST(RivalsInput, ThatIsWrongGetsASentence) {
  EXPECT_THROW(make_xattention_selector({.stride = 7}), InputError);
  EXPECT_THROW(make_xattention_selector({.threshold = 0}), InputError);
  EXPECT_THROW(make_flash_prefill_selector({.alpha = 2}), InputError);
  EXPECT_THROW(make_flash_prefill_selector({.blocks = {.block_size = 100}}), InputError);
  auto input = input_of(21);
  input.k_BGSD = input.k_BGSD.slice(2, 0, 100);
  const auto selector = make_flash_prefill_selector({});
  EXPECT_THROW(selector->select(input, *selector->make_state(input)), InputError) << "fewer keys than queries";
}

}  // namespace
}  // namespace prism
