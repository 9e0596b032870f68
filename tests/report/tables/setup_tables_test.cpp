#include "prism/report/tables/setup_tables.h"

#include <gtest/gtest.h>

#include "tests/report/run_folder.h"

namespace prism {
namespace {

TEST(ScheduleTable, ShowsHeadsTimesWidthAndKeyValueHeads) {
  const RunFolder folder;
  const Table table = schedule_table(six_runs(folder));
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0][1].text, "2 × 8");
  EXPECT_EQ(table.rows[1][1].text, "4 × 4, 2 kv");
}

TEST(RecipeTable, ListsOnlyFieldsThatDifferAndJoinsEqualLayers) {
  const RunFolder folder;
  const auto a =
      folder.write("a", run_lines({}),
                   R"({"name":"a","seed":1,"layers":[{"h":8,"w":4},{"h":8,"w":4},{"h":8,"w":4}],"text":"","only":1})");
  const auto b =
      folder.write("b", run_lines({.name = "prism"}),
                   R"({"name":"b","seed":1,"layers":[{"h":2,"w":4},{"h":2,"w":4},{"h":4,"w":4}],"text":"x"})");
  EXPECT_EQ(table_text(recipe_table(compare_runs({read_run(a), read_run(b)}))),
            "field          uniform  prism\n"
            "layers[0-1].h  8        2\n"
            "layers[2].h    8        4\n"
            "text           \"\"       x\n"
            "only           1        –\n");
}

TEST(RecipeTable, LeavesOutSeedsThatBothGroupsHaveAndNamesMissingRecipes) {
  const RunFolder folder;
  const Table table = recipe_table(six_runs(folder));
  ASSERT_EQ(table.rows.size(), 1U);
  EXPECT_EQ(table.rows[0][0].text, "rate");
  const Comparison without = compare_runs({read_run(folder.write("x", run_lines({}))),
                                           read_run(folder.write("y", run_lines({.name = "b"}), "{\"seed\":1}"))});
  EXPECT_EQ(recipe_table(without).notes.at(0), "uniform has no recipe.json.");
}

TEST(RecipeTable, TakesPathsThatOnlyLookLikeLists) {
  const RunFolder folder;
  const auto a = folder.write("a", run_lines({}), R"({"a[b":1,"c[]":1,"d[x]e":1,"f[99999999999999999999]":1})");
  const auto b =
      folder.write("b", run_lines({.name = "b"}), R"({"a[b":2,"c[]":2,"d[x]e":2,"f[99999999999999999999]":2})");
  const Table table = recipe_table(compare_runs({read_run(a), read_run(b)}));
  ASSERT_EQ(table.rows.size(), 4U);
  EXPECT_EQ(table.rows[2][0].text, "d[x]e");
}

TEST(MachineTable, HasShareOfTheLimitAndMemoryInUnits) {
  const RunFolder folder;
  EXPECT_NE(
      table_text(machine_table(six_runs(folder)))
          .find("uniform  Test CPU        2  bfloat16                    500                40.0                100\n"),
      std::string::npos)
      << table_text(machine_table(six_runs(folder)));
}

}  // namespace
}  // namespace prism
