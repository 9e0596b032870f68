// Properties that every selector must have.
#include "prism/sparse/selectors.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "prism/core/error.h"
#include "prism/sparse/exact_mass.h"
#include "prism/sparse/mask_statistics.h"
#include "tests/core/message_of.h"

namespace prism {
namespace {

using torch::Tensor;

/// Two sequences, four query heads on two key heads. Queries share a component with some earlier keys.
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

Tensor kept_of(const Selector& selector, const SelectorInput& input) {
  return kept_blocks(input, selector.select(input, *selector.make_state(input)));
}

Json blocks_of(int64_t size) {
  return {{"block_size", size}};
}

class EverySelector : public testing::TestWithParam<std::string> {};

/// All except auto, which needs costs (auto_selector_test.cpp).
std::vector<std::string> names_of_methods() {
  auto names = selector_names();
  std::erase(names, "auto");
  return names;
}

INSTANTIATE_TEST_SUITE_P(, EverySelector, testing::ValuesIn(names_of_methods()),
                         [](const auto& name) { return name.param; });

TEST_P(EverySelector, KeepsEachRowsOwnBlocksAndNothingThatNoQuerySees) {
  for (const auto& [queries, keys] : {std::pair{700, 700}, {300, 700}, {1, 700}, {45, 45}}) {
    SCOPED_TRACE(testing::Message() << queries << " of " << keys);
    const auto kept = kept_of(*find_selector(GetParam(), blocks_of(64)), make_input(queries, keys));
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
  const auto together = kept_of(*selector, input);
  for (int64_t b = 0; b < 2; ++b) {
    const int64_t queries = input.q_lengths_B[b].item<int64_t>(), keys = input.kv_lengths_B[b].item<int64_t>();
    auto alone = input;
    alone.q_BTHD = input.q_BTHD.narrow(0, b, 1).narrow(1, 0, queries);
    alone.k_BGSD = input.k_BGSD.narrow(0, b, 1).narrow(2, 0, keys);
    alone.q_lengths_B = alone.kv_lengths_B = Tensor();
    const auto kept = kept_of(*selector, alone);
    EXPECT_TRUE(at::equal(together.narrow(0, b, 1).narrow(2, 0, kept.size(2)).narrow(3, 0, kept.size(3)), kept));
  }
}

TEST_P(EverySelector, ChoosesAlikeWhateverTheThreadsAndTheType) {
  auto input = make_input(700, 700);
  input.q_BTHD = input.q_BTHD.to(torch::kBFloat16).contiguous();
  input.k_BGSD = input.k_BGSD.to(torch::kBFloat16);
  const auto selector = find_selector(GetParam(), blocks_of(64));
  at::set_num_threads(1);
  const auto one = kept_of(*selector, input);
  at::set_num_threads(3);
  EXPECT_TRUE(at::equal(kept_of(*selector, input), one));
  at::set_num_threads(1);
  input.q_BTHD = input.q_BTHD.to(torch::kFloat);
  input.k_BGSD = input.k_BGSD.to(torch::kFloat);
  EXPECT_TRUE(at::equal(kept_of(*selector, input), one));
}

TEST_P(EverySelector, NamesANanInQueriesOrKeysButNotInWhatIsBehindTheLengths) {
  for (const char* blind : {"dense", "random", "sink_window"})
    if (GetParam() == blind) return;  // choose by positions alone
  const auto selector = find_selector(GetParam(), blocks_of(64));
  for (const bool in_keys : {false, true}) {
    auto input = make_input(700, 700);
    (in_keys ? input.k_BGSD[1][1][650][3] : input.q_BTHD[1][650][1][3]).fill_(std::nan(""));
    EXPECT_REFUSED(kept_of(*selector, input),
                   std::string(in_keys ? "keys that are finite" : "queries that are finite"));
    input.q_lengths_B = input.kv_lengths_B = torch::tensor({700, 640}, torch::kInt);
    EXPECT_NO_THROW(kept_of(*selector, input));
  }
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

TEST(Presets, AreSettingsThatOthersAreSetOn) {
  const auto paper = selector_settings("flex_prefill", {{"preset", "paper"}});
  EXPECT_EQ(paper["preset"], "paper");
  EXPECT_EQ(paper["gamma"], 0.95);
  EXPECT_EQ(paper["min_budget"], 0);
  EXPECT_EQ(settings_difference(selector_settings("spectral", {}), selector_settings("spectral", {{"p", "0.5"}})),
            "p 0.95 instead of 0.5");
  EXPECT_EQ(settings_difference(paper, paper), "");
  auto named = paper;
  named["preset"] = "changed";
  EXPECT_EQ(settings_difference(paper, named), "preset \"paper\" instead of \"changed\"");
  EXPECT_EQ(settings_difference(Json(), named), "other settings");
  const auto changed = selector_settings("flex_prefill", {{"gamma", "0.5"}, {"preset", "paper"}});
  EXPECT_EQ(changed["gamma"], 0.5);
  EXPECT_EQ(selector_settings("flex_prefill", {})["preset"], "official");
  EXPECT_EQ(selector_settings("spectral", {})["calibration"], "causal_running");
  EXPECT_EQ(selector_settings("spectral", {{"preset", "official"}})["tail"], "padded");
  EXPECT_THROW(selector_settings("spectral", {{"preset", "mine"}}), InputError);
  EXPECT_THROW(selector_settings("random", {{"preset", "paper"}}), InputError);
  EXPECT_THROW(find_selector("spectral", {{"preset", 3}}), InputError);
  EXPECT_FALSE(selector_settings("random", {}).contains("preset"));

  const auto input = make_input(700, 700);
  auto by_name = blocks_of(64), by_hand = blocks_of(64);
  by_name["preset"] = "official";
  by_hand.update({{"calibration", "all_blocks"}, {"tail", "padded"}, {"recent", 1}, {"last_dense", 0}});
  EXPECT_TRUE(at::equal(kept_of(*find_selector("spectral", by_name), input),
                        kept_of(*find_selector("spectral", by_hand), input)));
}

TEST(Selectors, AreFoundByName) {
  EXPECT_THROW(find_selector("telepathy"), InputError);
  EXPECT_EQ(selector_names().size(), 11u);
}

double mean_recall(const SelectorInput& input, const Tensor& kept, int64_t block) {
  double sum = 0;
  for (const auto& head : measure_mask(input, make_block_mask(kept, block, block), kAllRows)) sum += head.recall() / 4;
  return sum;
}

TEST(Oracle, HoldsTheShareThatItIsAskedForWithTheLeastBlocks) {
  const auto input = make_input(700, 700);
  double before = 0;
  int compared = 0;
  for (const double p : {0.5, 0.8, 0.95, 1.0}) {
    auto settings = blocks_of(64);
    settings["p"] = p;
    const auto kept = kept_of(*find_selector("oracle", settings), input);
    const double found = mean_recall(input, kept, 64);
    EXPECT_GE(found, p - 1e-6);
    EXPECT_GT(found, before);
    before = found;
    // No other selector holds more at the oracle's density.
    for (const double share : {0.3, 0.5, 0.8, p}) {
      auto pooled = blocks_of(64);
      pooled["p"] = share;
      const auto other = kept_of(*find_selector("mean_pooling", pooled), input);
      if (other.sum().item<int64_t>() > kept.sum().item<int64_t>()) continue;
      ++compared;
      EXPECT_LE(mean_recall(input, other, 64), found);
    }
  }
  EXPECT_GE(compared, 4);
}

TEST(ExactMass, IsTheAttentionOfEachBlock) {
  const auto input = make_input(300, 500);
  const auto head = head_input(input, SelectorLengths(input), 0, 0, 64, 32);
  const auto kept = torch::rand({head.rows(), head.blocks()}) < 0.5;
  for (const int64_t t : {0, 17, 299}) {
    const int64_t position = head.first_query() + t, row = head.row_of(t);
    const auto found = at::mv(exact_mass(head, row), kept[row].to(torch::kDouble));
    const auto weights =
        at::mv(head.k_SD.narrow(0, 0, position + 1), head.q_TD[t]).mul(0.125).to(torch::kDouble).softmax(0);
    double share = 0;
    for (int64_t s = 0; s <= position; ++s)
      if (kept[row][s / 32].item<bool>()) share += weights[s].item<double>();
    const int64_t first = std::max(head.first_query(), (head.first_row() + row) * 64);
    EXPECT_NEAR(found[position - first].item<double>(), share, 1e-6);
  }
}

TEST(MeasureMask, KnowsTheFewestBlocksThatHoldAsMuch) {
  const auto input = make_input(300, 500);
  const auto oracle = find_selector("oracle", {{"p", 0.7}, {"block_size", 64}});
  const auto mask = oracle->select(input, *oracle->make_state(input));
  for (const auto& head : measure_mask(input, mask, kAllRows)) EXPECT_NEAR(head.oracle_density(), head.density(), 1e-9);
  const auto random = find_selector("random", {{"share", 0.5}, {"block_size", 64}});
  for (const auto& head : measure_mask(input, random->select(input, *random->make_state(input)), kAllRows))
    EXPECT_LT(head.oracle_density(), head.density());
  const auto nothing = make_block_mask(torch::zeros_like(kept_blocks(input, mask)), 64, 64);
  for (const auto& head : measure_mask(input, nothing, kAllRows)) EXPECT_EQ(head.oracle_density(), 0);
  EXPECT_TRUE(std::isnan(measure_mask(input, mask, 0)[0].oracle_density())) << "not measured";
}

TEST(MeasureMask, CountsWhatIsKeptHeadByHeadAndLooksAtTheRowsItIsAskedFor) {
  auto input = make_input(300, 500);
  input.q_lengths_B = torch::tensor({0, 200}, torch::kInt);
  input.kv_lengths_B = torch::tensor({100, 450}, torch::kInt);
  // The second sequence has queries 250 to 449 in rows 3 to 7 of 64, which see 4, 5, 6, 7 and 8 blocks.
  const auto kept = visible_blocks(input, 64, 64);
  ASSERT_EQ(kept.sizes(), torch::IntArrayRef({2, 4, 5, 8}));
  EXPECT_FALSE(kept[0].any().item<bool>());
  auto less = kept.clone();
  less[1][2].select(1, 0).fill_(false);  // head 2 without the first block
  const auto heads = measure_mask(input, make_block_mask(less, 64, 64), 2);
  ASSERT_EQ(heads.size(), 4u);
  EXPECT_EQ(heads[0].visible, 4 + 5 + 6 + 7 + 8);
  EXPECT_EQ(heads[0].density(), 1);
  EXPECT_EQ(heads[2].kept, 30 - 5);
  EXPECT_EQ(heads[0].shares.size(), 64u + 2);  // rows 4 and 7; row 7 has two queries
  EXPECT_EQ(heads[0].replaced, 5 + 8);
  EXPECT_NEAR(heads[0].recall(), 1, 1e-12);
  EXPECT_LT(heads[2].recall(), 1);
  EXPECT_LE(heads[2].recall_quantile(0), heads[2].recall_quantile(0.05));
  EXPECT_LE(heads[2].recall_quantile(0.05), heads[2].recall());
  EXPECT_LE(heads[2].oracle_density(), 1);
  EXPECT_EQ(measure_mask(input, {64, 64, {}, {}}, 0)[2].kept, 30);
}

}  // namespace
}  // namespace prism
