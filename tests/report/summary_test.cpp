#include "prism/report/summary.h"

#include <gtest/gtest.h>

#include "prism/report/schedule_picture.h"
#include "tests/report/run_folder.h"

namespace prism {
namespace {

/// Two models, three seeds each; prism is lower by 0.1, 0.2 and 0.3.
Comparison six_runs(const RunFolder& folder) {
  std::vector<Run> runs;
  for (int64_t seed = 1; seed <= 3; ++seed) {
    const double own = 0.01 * static_cast<double>(seed), gap = 0.1 * static_cast<double>(seed);
    const auto write = [&](const std::string& name, double last) {
      return read_run(folder.write(fmt::format("{}_{}", name, seed),
                                   run_lines({.name = name, .seed = seed, .losses = {5.0, 4.5, last}}),
                                   fmt::format(R"({{"seed":{},"rate":{}}})", seed, name == "prism" ? 2 : 1)));
    };
    runs.push_back(write("uniform", 4.0 + own));
    runs.push_back(write("prism", 4.0 + own - gap));
  }
  return compare_runs(std::move(runs));
}

TEST(ResultsTable, HasMeansDeviationsAndPairedDifferences) {
  const RunFolder folder;
  EXPECT_EQ(table_text(results_table(six_runs(folder))),
            "run      schedule  seeds  parameters  tokens         val loss         Δ val loss   tokens/s        time\n"
            "uniform  2x2           3   8,421,376   3,000  4.0200 ± 0.0100  baseline           1,234 ± 0  1 min 10 s\n"
            "prism    2x2           3   8,421,376   3,000  3.8200 ± 0.0900   -0.2000 ± 0.1000  1,234 ± 0  1 min 10 s\n"
            "Δ val loss: validation loss minus that of uniform after equal numbers of tokens, seed by seed where the "
            "seeds agree; "
            "negative is better.\n"
            "± is the sample standard deviation over seeds; time and tokens/s are means over them.\n");
}

TEST(ResultsTable, MarksTheLowestLossAndFollowsTheBaseline) {
  const RunFolder folder;
  Comparison comparison = six_runs(folder);
  comparison.baseline = 1;
  const Table table = results_table(comparison);
  EXPECT_FALSE(table.rows[0][5].strong);
  EXPECT_TRUE(table.rows[1][5].strong);
  EXPECT_EQ(table.rows[0][6].text, "+0.2000");
  EXPECT_EQ(table.rows[1][6].text, "baseline");
}

TEST(ResultsTable, OfOneRunHasNoDifferencesAndNoSeeds) {
  const RunFolder folder;
  const Comparison one = compare_runs({read_run(folder.write("r", run_lines({})))});
  EXPECT_EQ(table_text(results_table(one)),
            "run      schedule  parameters  tokens  val loss  tokens/s        time\n"
            "uniform  2x2        8,421,376   3,000    4.0000     1,234  1 min 10 s\n");
}

TEST(ResultsTable, ShowsUnfinishedRunsAsSuch) {
  const RunFolder folder;
  const Comparison comparison =
      compare_runs({read_run(folder.write("a", run_lines({}))),
                    read_run(folder.write("b", run_lines({.name = "half", .losses = {4.9, 4.25}, .end = false}))),
                    read_run(folder.write("c", run_lines({.name = "fresh", .losses = {}}))),
                    read_run(folder.write("d", "{\"kind\":\"train\",\"tokens\":5,\"loss\":8}\n"))});
  EXPECT_EQ(table_text(results_table(comparison)),
            "run      schedule  state         parameters  tokens  val loss  Δ val loss  tokens/s        time\n"
            "uniform  2x2       finished       8,421,376   3,000    4.0000    baseline     1,234  1 min 10 s\n"
            "half     2x2       66% done       8,421,376   2,000    4.2500     -0.2500     1,000        20 s\n"
            "fresh    2x2       0% done        8,421,376       0         –           –         –         0 s\n"
            "d        –         not finished           –       5         –           –         –         0 s\n"
            "Δ val loss: validation loss minus that of uniform after equal numbers of tokens; negative is better.\n"
            "half has not finished: 2,000 tokens of 3,000 so far.\n"
            "fresh has not finished: 0 tokens of 3,000 so far, no evaluation yet.\n"
            "d has not finished: 5 tokens so far, no evaluation yet.\n");
}

TEST(ResultsTable, CountsFinishedSeedsOnly) {
  const RunFolder folder;
  const Comparison comparison =
      compare_runs({read_run(folder.write("a", run_lines({.seed = 1}))),
                    read_run(folder.write("b", run_lines({.seed = 2, .losses = {9, 9}, .end = false})))});
  const Table table = results_table(comparison);
  ASSERT_EQ(table.rows.size(), 1U);
  EXPECT_EQ(table.rows[0][2].text, "1 of 2");
  EXPECT_EQ(table.rows[0][6].text, "4.0000");
  EXPECT_EQ(table.rows[0][6].spread, "") << "one seed has no deviation";
  EXPECT_EQ(table.notes.back(), "uniform, seed 2, has not finished: 2,000 tokens of 3,000 so far.");
}

TEST(ResultsTable, SaysWhereTheDifferenceIsTakenEarlierAndWhereItIsInterpolated) {
  const RunFolder folder;
  const Comparison shorter =
      compare_runs({read_run(folder.write("a", run_lines({.losses = {5, 4}}))),
                    read_run(folder.write("b", run_lines({.name = "long", .losses = {5, 3.5, 3}})))});
  const Table table = results_table(shorter);
  EXPECT_EQ(table.rows[1][5].text, "-0.5000") << "at 2000 tokens, not 3.0 - 4.0";
  EXPECT_EQ(table.notes.back(), "The difference of long is taken after 2,000 tokens, the last that both reached.");
  const std::string other =
      "{\"kind\":\"eval\",\"tokens\":1500,\"val_loss\":4}\n{\"kind\":\"eval\",\"tokens\":2500,\"val_loss\":3}\n{"
      "\"kind\":\"end\",\"tokens\":2500}\n";
  const Comparison apart =
      compare_runs({read_run(folder.write("a", run_lines({}))), read_run(folder.write("c", other))});
  EXPECT_NE(results_table(apart).notes.back().find("a straight line is assumed"), std::string::npos);
}

TEST(Headline, NamesTheLowestLossAndItsDistance) {
  const RunFolder folder;
  Comparison comparison = six_runs(folder);
  EXPECT_EQ(headline(comparison),
            "prism has the lowest validation loss after 3,000 tokens: 3.8200 ± 0.0900, which is 0.2000 ± 0.1000 below "
            "uniform.");
  EXPECT_EQ(last_differences(comparison), " At the last evaluation that both have: prism −0.2000 ± 0.1000.");
  comparison.baseline = 1;
  EXPECT_EQ(headline(comparison),
            "prism has the lowest validation loss after 3,000 tokens: 3.8200 ± 0.0900. It is the baseline.");
}

TEST(Headline, DoesNotCompareRunsOfDifferentLength) {
  const RunFolder folder;
  const auto full = folder.write("a", run_lines({})),
             half = folder.write("b", run_lines({.name = "half", .losses = {1, 1}, .end = false}));
  EXPECT_NE(headline(compare_runs({read_run(full), read_run(half)})).find("none is called the best"),
            std::string::npos);
  const auto same = folder.write("c", run_lines({.name = "same", .losses = {5, 4.5, 3.9}}));
  EXPECT_EQ(headline(compare_runs({read_run(full), read_run(half), read_run(same)})),
            "Of the runs that got that far, same has the lowest validation loss after 3,000 tokens: 3.9000, which is "
            "0.1000 below uniform.");
  const auto fresh = folder.write("d", run_lines({.losses = {}}));
  EXPECT_EQ(headline(compare_runs({read_run(fresh)})), "uniform: no validation loss has been recorded yet.");
  EXPECT_EQ(headline(compare_runs({read_run(full)})), "uniform: validation loss 4.0000 after 3,000 tokens.");
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

TEST(RunsTable, HasARowForEachSeed) {
  const RunFolder folder;
  const Table table = runs_table(six_runs(folder));
  ASSERT_EQ(table.rows.size(), 6U);
  EXPECT_EQ(table.rows[2][1].text, "3");
  EXPECT_EQ(table.rows[2][5].text, "4.5300") << "training loss of uniform, seed 3";
  EXPECT_EQ(table.rows[2][6].text, "4.0300");
}

TEST(ValidationTable, ThinsToADozenRowsAndKeepsTheLast) {
  const RunFolder folder;
  std::vector<double> losses(100, 4.0);
  losses.back() = 3.25;
  const Table table = validation_table(compare_runs({read_run(folder.write("r", run_lines({.losses = losses})))}));
  EXPECT_LE(table.rows.size(), 12U);
  EXPECT_GE(table.rows.size(), 10U);
  EXPECT_EQ(table.rows.back()[0].text, "100,000");
  EXPECT_EQ(table.rows.back()[1].text, "3.2500");
}

TEST(ScheduleTable, ShowsHeadsTimesWidthAndKeyValueHeads) {
  const RunFolder folder;
  const Table table = schedule_table(six_runs(folder));
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0][1].text, "2 × 8");
  EXPECT_EQ(table.rows[1][1].text, "4 × 4, 2 kv");
}

TEST(ScheduleSvg, DrawsABoxForEachHeadAsWideAsTheHead) {
  const std::string svg = schedule_svg({{2, 2, 128}, {8, 8, 32}}, "<prism>");
  size_t boxes = 0, first = 0;
  for (size_t at = svg.find("<rect"); at != std::string::npos; at = svg.find("<rect", at + 1)) ++boxes;
  for (size_t at = svg.find("class=\"first\""); at != std::string::npos; at = svg.find("class=\"first\"", at + 1))
    ++first;
  EXPECT_EQ(boxes, 10U);
  EXPECT_EQ(first, 2U);
  EXPECT_NE(svg.find("aria-label=\"Heads of &lt;prism&gt;. layer 1: 2 × 128; layer 2: 8 × 32.\""), std::string::npos)
      << svg;
  // The second head of the first layer starts in the middle, that of the second layer at an eighth.
  EXPECT_NE(svg.find("class=\"head\" x=\"141.00\""), std::string::npos) << svg;
  EXPECT_NE(svg.find("class=\"head\" x=\"60.75\""), std::string::npos);
}

}  // namespace
}  // namespace prism
