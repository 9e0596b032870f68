// What must hold of every selector, whatever its method.
#include "prism/sparse/selectors.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "prism/core/error.h"
#include "prism/sparse/exact_mass.h"

namespace prism {
namespace {

using torch::Tensor;

/// Two sequences, four query heads on two key heads: queries look for what they share with some earlier keys.
SelectorInput make_input(int64_t queries, int64_t keys) {
  torch::manual_seed(7);
  const auto topic = torch::randn({8, 64});
  const auto which = torch::randint(8, {2, (keys + 31) / 32}, torch::kLong).repeat_interleave(32, 1).narrow(1, 0, keys);
  const auto own = 1.5 * topic.index_select(0, which.flatten()).view({2, 1, keys, 64});
  return {.q_BTHD = (own + torch::randn({2, 4, keys, 64})).narrow(2, keys - queries, queries).transpose(1, 2),
          .k_BGSD = own + torch::randn({2, 2, keys, 64}),
          .q_lengths_B = {},
          .kv_lengths_B = {},
          .pairs = half_split_pairs(64, std::vector<double>(32, 1.0))};
}

Tensor kept_of(const Selector& selector, const SelectorInput& input, int64_t key_block) {
  return kept_blocks(selector.select(input, *selector.make_state(input)),
                     (input.k_BGSD.size(2) + key_block - 1) / key_block);
}

Json blocks_of(int64_t size) {
  return {{"block_size", size}};
}

class EverySelector : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(, EverySelector, testing::ValuesIn(selector_names()),
                         [](const auto& name) { return name.param; });

TEST_P(EverySelector, KeepsEachRowsOwnBlocksAndNothingThatNoQuerySees) {
  for (const auto& [queries, keys] : {std::pair{700, 700}, {300, 700}, {1, 700}, {45, 45}}) {
    SCOPED_TRACE(testing::Message() << queries << " of " << keys);
    const auto kept = kept_of(*find_selector(GetParam(), blocks_of(64)), make_input(queries, keys), 64);
    const int64_t first_row = (keys - queries) / 64;
    ASSERT_EQ(kept.size(2), (keys - 1) / 64 - first_row + 1);
    for (int64_t m = 0; m < kept.size(2); ++m) {
      EXPECT_TRUE(kept.select(2, m).select(2, first_row + m).all().item<bool>());
      EXPECT_FALSE(kept.select(2, m).slice(2, first_row + m + 1).any().item<bool>());
    }
  }
}

TEST_P(EverySelector, ChoosesForEachSequenceOfABatchAsForItAlone) {
  auto input = make_input(700, 700);
  input.q_lengths_B = torch::tensor({130, 650}, torch::kInt);
  input.kv_lengths_B = torch::tensor({400, 700}, torch::kInt);
  const auto selector = find_selector(GetParam(), blocks_of(64));
  const auto together = kept_of(*selector, input, 64);
  for (int64_t b = 0; b < 2; ++b) {
    const int64_t queries = input.q_lengths_B[b].item<int64_t>(), keys = input.kv_lengths_B[b].item<int64_t>();
    auto alone = input;
    alone.q_BTHD = input.q_BTHD.narrow(0, b, 1).narrow(1, 0, queries);
    alone.k_BGSD = input.k_BGSD.narrow(0, b, 1).narrow(2, 0, keys);
    alone.q_lengths_B = alone.kv_lengths_B = Tensor();
    const auto kept = kept_of(*selector, alone, 64);
    EXPECT_TRUE(at::equal(together.narrow(0, b, 1).narrow(2, 0, kept.size(2)).narrow(3, 0, kept.size(3)), kept));
  }
}

TEST_P(EverySelector, ChoosesAlikeWhateverTheThreadsAndTheType) {
  auto input = make_input(700, 700);
  input.q_BTHD = input.q_BTHD.to(torch::kBFloat16).contiguous();
  input.k_BGSD = input.k_BGSD.to(torch::kBFloat16);
  const auto selector = find_selector(GetParam(), blocks_of(64));
  at::set_num_threads(1);
  const auto one = kept_of(*selector, input, 64);
  at::set_num_threads(3);
  EXPECT_TRUE(at::equal(kept_of(*selector, input, 64), one));
  at::set_num_threads(1);
  input.q_BTHD = input.q_BTHD.to(torch::kFloat);
  input.k_BGSD = input.k_BGSD.to(torch::kFloat);
  EXPECT_TRUE(at::equal(kept_of(*selector, input, 64), one));
}

TEST_P(EverySelector, SaysWhichSettingsItHas) {
  EXPECT_FALSE(selector_help(GetParam()).empty());
  EXPECT_FALSE(selector_fields(GetParam()).empty());
  EXPECT_EQ(selector_settings(GetParam(), {{"block_size", "32"}})["block_size"], 32);
  EXPECT_THROW(selector_settings(GetParam(), {{"block_sise", "32"}}), InputError);
  EXPECT_THROW(selector_settings(GetParam(), {{"block_size", "many"}}), InputError);
  EXPECT_THROW(find_selector(GetParam(), {{"no_such_field", 1}}), InputError);
  EXPECT_THROW(find_selector(GetParam(), blocks_of(100)), InputError);
}

TEST(Selectors, AreFoundByName) {
  EXPECT_THROW(find_selector("telepathy"), InputError);
  EXPECT_EQ(selector_names().size(), 10u);
}

double mean_recall(const SelectorInput& input, const Tensor& kept, int64_t block) {
  double sum = 0;
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t h = 0; h < 4; ++h) {
      const HeadInput head{input.q_BTHD[b].select(1, h).contiguous(), input.k_BGSD[b][h / 2].contiguous(), block, block,
                           0.125};
      sum += recall(head, kept[b][h]).mean().item<double>() / 8;
    }
  return sum;
}

TEST(Oracle, HoldsTheShareThatItIsAskedForWithTheLeastBlocks) {
  const auto input = make_input(700, 700);
  double before = 0;
  for (const double p : {0.5, 0.8, 0.95, 1.0}) {
    auto settings = blocks_of(64);
    settings["p"] = p;
    const auto kept = kept_of(*find_selector("oracle", settings), input, 64);
    const double found = mean_recall(input, kept, 64);
    EXPECT_GE(found, p - 1e-6);
    EXPECT_GT(found, before);
    before = found;
    // At its density nothing else holds more.
    auto pooled = blocks_of(64);
    pooled["p"] = p;
    const auto other = kept_of(*find_selector("mean_pooling", pooled), input, 64);
    if (other.sum().item<int64_t>() <= kept.sum().item<int64_t>()) {
      EXPECT_LE(mean_recall(input, other, 64), found);
    }
  }
}

TEST(Recall, IsTheShareOfTheExactAttention) {
  const auto input = make_input(300, 500);
  const HeadInput head{input.q_BTHD[0].select(1, 0).contiguous(), input.k_BGSD[0][0].contiguous(), 64, 32, 0.125};
  const auto kept = torch::rand({head.rows(), head.blocks()}) < 0.5;
  const auto found = recall(head, kept);
  for (const int64_t t : {0, 17, 299}) {
    const int64_t position = head.first_query() + t;
    const auto weights =
        at::mv(head.k_SD.narrow(0, 0, position + 1), head.q_TD[t]).mul(0.125).to(torch::kDouble).softmax(0);
    double share = 0;
    for (int64_t s = 0; s <= position; ++s)
      if (kept[head.row_of(t)][s / 32].item<bool>()) share += weights[s].item<double>();
    EXPECT_NEAR(found[t].item<double>(), share, 1e-6);
  }
}

}  // namespace
}  // namespace prism
