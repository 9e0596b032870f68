// Which schedules a search trains, for how long, and which of them reach the next rung.
#include "prism/training/sweep/schedule_sweep.h"

#include <gtest/gtest.h>

#include <cmath>

#include "prism/core/files.h"
#include "tests/core/message_of.h"
#include "tests/training/sweep_folder.h"

namespace prism {
namespace {

class ScheduleSearchFolder : public SweepFolder {
 protected:
  ScheduleSearch load_search(const std::string& more, const std::vector<Override>& overrides = {}) const {
    write_file(path("search.json"), R"({"recipe": "base.json", "seeds": [4, 2],
      "set": {"model.schedule": "4x6", "train.tokens": 6400, "train.batch_rows": 2})" +
                                        more + "}");
    return load_schedule_search(path("search.json"), overrides);
  }
};

TEST_F(ScheduleSearchFolder, ProposesForTheRecipesModel) {
  const auto search = load_search(R"(, "search": {"head_dim_step": 2, "candidates": 1000})");
  EXPECT_EQ(search.proposed, static_cast<int64_t>(search.candidates.size()));
  EXPECT_EQ(search.seeds, (std::vector<int64_t>{4, 2}));
  for (const auto& schedule : search.candidates) {
    EXPECT_EQ(schedule.size(), 6u);
    EXPECT_EQ(schedule.back(), 4);
    EXPECT_LT(schedule.front(), 4);
  }
}

TEST_F(ScheduleSearchFolder, DrawsTheSameSampleForTheSameSeed) {
  const auto some = load_search(R"(, "search": {"head_dim_step": 2, "candidates": 2})");
  const auto all = load_search(R"(, "search": {"head_dim_step": 2, "candidates": 1000})");
  ASSERT_EQ(some.candidates.size(), 2u);
  EXPECT_EQ(some.proposed, all.proposed);
  EXPECT_NE(some.candidates[0], some.candidates[1]);
  EXPECT_EQ(load_search(R"(, "search": {"head_dim_step": 2, "candidates": 2})").candidates, some.candidates);
}

TEST_F(ScheduleSearchFolder, MultipliesTokensByTheFactorFromRungToRung) {
  const auto search = load_search(R"(, "search": {"head_dim_step": 2, "rungs": 4, "factor": 4})");
  EXPECT_EQ(rung_tokens(search, 3), 6400);
  EXPECT_EQ(rung_tokens(search, 2), 1600);
  EXPECT_EQ(rung_tokens(search, 0), 112) << "100, in whole steps of 16";
  EXPECT_REFUSED(load_search(R"(, "search": {"head_dim_step": 2, "rungs": 12})"), "at least one step, 16 tokens");
  const auto uneven = load_search(R"(, "search": {"head_dim_step": 2})", {{"train.tokens", "6401"}});
  EXPECT_EQ(rung_tokens(uneven, uneven.options.rungs - 1), 6416);
}

TEST_F(ScheduleSearchFolder, SetsTheUniformScheduleBesideTheOthersInEveryRung) {
  const auto search = load_search(R"(, "search": {"head_dim_step": 2})");
  const auto sweep = rung_of(search, 0, {{1, 1, 2, 2, 4, 4}});
  ASSERT_EQ(sweep.arms.size(), 2u);
  EXPECT_EQ(sweep.arms[0].name, "4x6");
  EXPECT_EQ(sweep.arms[1].name, "1x2,2x2,4x2");
  auto model = sweep.arms[1].recipe.model;
  EXPECT_EQ(heads_of(model), (HeadSchedule{1, 1, 2, 2, 4, 4}));
  EXPECT_EQ(model.layers[0].head_dim, 16);
  EXPECT_EQ(model.layers[5].head_dim, 4);
  EXPECT_EQ(sweep.arms[1].recipe.train.tokens, rung_tokens(search, 0));
}

TEST_F(ScheduleSearchFolder, KeepsTheRatioOfGroupedHeads) {
  const auto search =
      load_search(R"(, "search": {"head_dim_step": 2, "candidates": 1000})", {{"model.kv_schedule", "/2"}});
  for (const auto& schedule : search.candidates)
    for (const int64_t heads : schedule) EXPECT_EQ(heads % 2, 0);
  const auto sweep = rung_of(search, 0, {search.candidates[0]});
  for (const auto& layer : sweep.arms[1].recipe.model.layers) EXPECT_EQ(layer.heads, 2 * layer.kv_heads);
}

TEST_F(ScheduleSearchFolder, KeepsTheLowestLossesInTheirOrder) {
  const auto search = load_search(R"(, "search": {"head_dim_step": 2, "factor": 3})");
  const std::vector<HeadSchedule> schedules = {{1}, {2}, {3}, {4}, {5}};
  EXPECT_EQ(best_schedules(search, schedules, {3, std::nan(""), 1, 2, 0.5}, {}), (std::vector<HeadSchedule>{{3}, {5}}));
  EXPECT_EQ(best_schedules(search, schedules, {3, std::nan(""), std::nan(""), std::nan(""), std::nan("")}, {}),
            (std::vector<HeadSchedule>{{1}}));
  EXPECT_TRUE(best_schedules(search, {{7}}, {std::nan("")}, {}).empty());
  EXPECT_EQ(best_schedules(search, schedules, {3, std::nan(""), 1, 2, 0.5}, {"accuracy", false}),
            (std::vector<HeadSchedule>{{1}, {4}}));
}

TEST_F(ScheduleSearchFolder, RefusesWhatCannotBeSearched) {
  EXPECT_REFUSED(load_search(R"(, "arms": {"a": {}})"), "expected no arms");
  EXPECT_REFUSED(load_search(R"(, "search": {"factor": 1})"), "search.factor");
  EXPECT_REFUSED(load_search(R"(, "search": {"head_dim_step": 2, "first_heads": [3]})"),
                 "expected a schedule in the space");
  EXPECT_REFUSED(load_search(R"(, "search": {"firts_heads": [3]})"), "did you mean");
}

}  // namespace
}  // namespace prism
