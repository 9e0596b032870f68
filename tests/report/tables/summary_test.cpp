#include "prism/report/tables/summary.h"

#include <gtest/gtest.h>

#include "prism/report/draw/number_text.h"
#include "tests/report/made_runs.h"
#include "tests/report/run_folder.h"

namespace prism {
namespace {

TEST(ResultsTable, HasMeansDeviationsAndPairedDifferencesWithTheirIntervals) {
  const RunFolder folder;
  EXPECT_EQ(
      table_text(results_table(six_runs(folder))),
      "run      schedule         val loss  perplexity         Δ val loss        95% interval  seeds  parameters  "
      "tokens   "
      "tokens/s        time\n"
      "uniform  2x2       4.0200 ± 0.0100       55.70  baseline                            –      3   8,421,376  "
      " 3,000  "
      "1,234 ± 0  1 min 10 s\n"
      "prism    2x2       3.8200 ± 0.0900       45.60   -0.2000 ± 0.1000  -0.4484 to +0.0484      3   8,421,376  "
      " 3,000  "
      "1,234 ± 0  1 min 10 s\n"
      "Δ val loss: validation loss minus that of uniform after equal numbers of tokens, paired by seed; negative "
      "is better.\n"
      "The lowest validation loss is marked (bold; a star in a terminal) only if the 95% interval (Student's t) of "
      "its difference to uniform, paired by seed, excludes zero. If uniform itself is lowest, its difference to "
      "the runner-up counts. Groups with fewer seeds than others are not marked.\n"
      "± is the sample standard deviation over seeds; time and tokens/s are means over them.\n");
}

TEST(ResultsTable, MarksTheLowestLossOnlyWhereItsIntervalExcludesZero) {
  const Table close = results_table(compare_groups({{"base", {4.0, 4.5, 5.0}}, {"low", {3.9, 4.3, 4.7}}}));
  for (const auto& row : close.rows) EXPECT_FALSE(row[2].strong) << row[0].text;
  const Table clear = results_table(compare_groups({{"base", {4.0, 4.5, 5.0}}, {"low", {3.9, 4.41, 4.89}}}));
  EXPECT_FALSE(clear.rows[0][2].strong);
  EXPECT_TRUE(clear.rows[1][2].strong);
  const Table baseline = results_table(compare_groups({{"base", {3.9, 4.41, 4.89}}, {"high", {4.0, 4.5, 5.0}}}));
  EXPECT_TRUE(baseline.rows[0][2].strong);
  EXPECT_FALSE(baseline.rows[1][2].strong);
  const Table single = results_table(compare_groups({{"base", {4.0}}, {"low", {1.0}}}));
  EXPECT_FALSE(single.rows[1][2].strong) << "one seed shows nothing";
}

TEST(ResultsTable, FollowsTheBaseline) {
  const RunFolder folder;
  Comparison comparison = six_runs(folder);
  comparison.baseline = 1;
  const Table table = results_table(comparison);
  EXPECT_EQ(table.rows[0][4].text, "+0.2000");
  EXPECT_EQ(table.rows[0][5].text, "-0.0484 to +0.4484");
  EXPECT_EQ(table.rows[1][4].text, "baseline");
}

TEST(ResultsTable, SaysWhereNoPairingWasPossibleAndMarksNothingThere) {
  auto runs = runs_ending_at("base", {4.0, 4.001});
  for (prism::Run run : runs_ending_at("low", {3.0, 3.001})) {
    run.seed = *run.seed + 10;
    runs.push_back(run);
  }
  const Comparison comparison = compare_runs(runs);
  const Table table = results_table(comparison);
  EXPECT_EQ(table.rows[1][4].text, "-1.0000");
  EXPECT_EQ(table.rows[1][4].spread, "0.0010");
  EXPECT_EQ(table.columns[5].header, "seeds") << "no column for intervals without values";
  EXPECT_FALSE(table.rows[1][2].strong);
  EXPECT_NE(table_text(table).find("No pairing for low: no seed is shared with base"), std::string::npos);
  EXPECT_NE(headline(comparison).find("share no seed, so it is not paired and shows nothing"), std::string::npos);
}

TEST(ResultsTable, SaysOverHowManySharedSeedsADifferenceIs) {
  const Table table = results_table(compare_groups({{"base", {4.0, 4.1, 4.2}}, {"few", {3.0, 3.2}}}));
  EXPECT_NE(table_text(table).find("The difference of few is over the 2 seeds shared with base.\n"), std::string::npos)
      << table_text(table);
}

TEST(ResultsTable, GathersWhatIsUnfinishedByGroup) {
  std::vector<prism::Run> runs = runs_ending_at("base", {4.0, 4.1, 4.2});
  runs[1].finished = runs[2].finished = false;
  runs[1].trained = 2000;
  const Table table = results_table(compare_runs(runs));
  EXPECT_EQ(table.notes.back(), "base, seeds 2 and 3, have not finished: 2,000 to 3,000 tokens so far.");
}

TEST(ResultsTable, OfOneRunHasNoDifferencesAndNoSeeds) {
  const RunFolder folder;
  const Comparison one = compare_runs({read_run(folder.write("r", run_lines({})))});
  EXPECT_EQ(table_text(results_table(one)),
            "run      schedule  val loss  perplexity  parameters  tokens  tokens/s        time\n"
            "uniform  2x2         4.0000       54.60   8,421,376   3,000     1,234  1 min 10 s\n");
}

TEST(ResultsTable, ShowsUnfinishedRunsAsSuch) {
  const RunFolder folder;
  const Comparison comparison =
      compare_runs({read_run(folder.write("a", run_lines({}))),
                    read_run(folder.write("b", run_lines({.name = "half", .losses = {4.9, 4.25}, .end = false}))),
                    read_run(folder.write("c", run_lines({.name = "fresh", .losses = {}}))),
                    read_run(folder.write("d", "{\"kind\":\"train\",\"tokens\":5,\"loss\":8}\n"))});
  EXPECT_EQ(
      table_text(results_table(comparison)),
      "run      schedule  val loss  perplexity  Δ val loss  state         parameters  tokens  tokens/s        time\n"
      "uniform  2x2         4.0000       54.60    baseline  finished       8,421,376   3,000     1,234  1 min 10 s\n"
      "half     2x2         4.2500       70.11     -0.2500  66% done       8,421,376   2,000     1,000        20 s\n"
      "fresh    2x2              –           –           –  0% done        8,421,376       0         –         0 s\n"
      "d        –                –           –           –  not finished           –       5         –         0 s\n"
      "Δ val loss: validation loss minus that of uniform after equal numbers of tokens; negative is better.\n"
      "The lowest validation loss is marked (bold; a star in a terminal) only if the 95% interval (Student's t) of "
      "its difference to uniform, paired by seed, excludes zero. If uniform itself is lowest, its difference to "
      "the runner-up counts. Groups with fewer seeds than others are not marked.\n"
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
  EXPECT_EQ(table.rows[0][4].text, "1 of 2");
  EXPECT_EQ(table.rows[0][2].text, "4.0000");
  EXPECT_EQ(table.rows[0][2].spread, "") << "one seed has no deviation";
  EXPECT_EQ(table.notes.back(), "uniform, seed 2, has not finished: 2,000 tokens of 3,000 so far.");
}

TEST(ResultsTable, SaysWhereTheDifferenceIsTakenEarlierAndWhereItIsInterpolated) {
  const RunFolder folder;
  const Comparison shorter =
      compare_runs({read_run(folder.write("a", run_lines({.losses = {5, 4}}))),
                    read_run(folder.write("b", run_lines({.name = "long", .losses = {5, 3.5, 3}})))});
  const Table table = results_table(shorter);
  EXPECT_EQ(table.rows[1][4].text, "-0.5000") << "at 2000 tokens, not 3.0 - 4.0";
  EXPECT_EQ(table.notes.back(),
            "The difference of long is taken after 2,000 tokens, the last evaluation shared with uniform.");
  const std::string other =
      "{\"kind\":\"eval\",\"tokens\":1500,\"val_loss\":4}\n{\"kind\":\"eval\",\"tokens\":2500,\"val_loss\":3}\n{"
      "\"kind\":\"end\",\"tokens\":2500}\n";
  const Comparison apart =
      compare_runs({read_run(folder.write("a", run_lines({}))), read_run(folder.write("c", other))});
  EXPECT_NE(results_table(apart).notes.back().find("evaluations are interpolated linearly"), std::string::npos);
}

TEST(ReachTable, HasTokensAndSecondsUntilTheBaselinesMeanFinalLoss) {
  // The baseline ends at 4.0 and 4.2, so that 4.1 is the goal; curves fall from 5 at 1000 tokens to their end at 3000.
  auto comparison = compare_groups({{"base", {4.0, 4.2}}, {"low", {3.2, 3.5}}, {"high", {4.5, 4.6}}});
  for (auto& group : comparison.groups) {
    for (auto& run : group.runs) run.valid = {{1000, run.valid[0].loss, 100}, {3000, run.valid[1].loss, 300}};
  }
  EXPECT_EQ(
      table_text(reach_table(comparison)),
      "run   seeds that reach it             tokens   seconds\n"
      "base               1 of 2        2,800        280\n"
      "low                2 of 2        2,100 ± 141  210 ± 14\n"
      "high               0 of 2  not reached          –\n"
      "The first point at which a validation curve, interpolated linearly between evaluations, is at or below 4.1000, "
      "the mean final validation loss of base. Means and deviations are over the seeds that reach it; seconds include "
      "evaluations.\n");
}

TEST(ReachTable, HasNoRowsWithoutABaselinesLossOrForOneGroup) {
  EXPECT_TRUE(reach_table(compare_groups({{"base", {4.0, 4.2}}})).rows.empty());
  EXPECT_TRUE(reach_table(compare_runs({make_run("a", 1, {}), make_run("b", 1, {{10, 4.0}})})).rows.empty());
}

TEST(FrontText, NamesTheGroupsThatNoOtherBeats) {
  auto comparison = compare_groups({{"base", {4.0}}, {"low", {3.0}}, {"both", {3.0}}});
  comparison.groups[0].runs[0].rate = 100;
  comparison.groups[1].runs[0].rate = 90;
  EXPECT_EQ(front_text(comparison),
            "On the Pareto front of the means, where no other group is at least as low and as fast: low and base.");
  comparison.groups[2].runs[0].rate = 200;
  EXPECT_EQ(front_text(comparison),
            "On the Pareto front of the means, where no other group is at least as low and as fast: both.");
}

TEST(Headline, SaysThatNothingIsShownWhereTheIntervalIncludesZero) {
  const RunFolder folder;
  Comparison comparison = six_runs(folder);
  EXPECT_EQ(headline(comparison),
            "prism has the lowest validation loss after 3,000 tokens: 3.8200 ± 0.0900. Its difference to uniform, "
            "−0.2000 ± 0.1000, has a 95% interval of −0.4484 to +0.0484, paired by seed, which includes zero, so it "
            "is not shown to be better.");
  comparison.baseline = 1;
  EXPECT_EQ(headline(comparison),
            "prism, the baseline, has the lowest validation loss after 3,000 tokens: 3.8200 ± 0.0900. Its difference "
            "to the runner-up, uniform, −0.2000 ± 0.1000, has a 95% interval of −0.4484 to +0.0484, paired by seed, "
            "which includes zero, so it is not shown to be better.");
}

TEST(Headline, SaysWhereTheIntervalExcludesZero) {
  EXPECT_EQ(headline(compare_groups({{"base", {4.0, 4.5, 5.0}}, {"low", {3.9, 4.41, 4.89}}})),
            "low has the lowest validation loss after 3,000 tokens: 4.4000 ± 0.4951. Its difference to base, −0.1000 ± "
            "0.0100, has a 95% interval of −0.1248 to −0.0752, paired by seed, which excludes zero.");
}

TEST(Headline, IsOfTheSeedsThatAreShared) {
  const std::string text = headline(compare_groups({{"base", {4.0, 4.0}}, {"low", {4.1, 4.1001, 1.0}}}));
  EXPECT_TRUE(text.starts_with("base, the baseline, has the lowest validation loss")) << text;
  const std::string few = headline(compare_groups({{"base", {4.0, 4.1}}, {"low", {3.9, 4.0}}, {"once", {1.0}}}));
  EXPECT_TRUE(few.starts_with("Of the groups that share 2 seeds with the baseline, low has the lowest")) << few;
}

TEST(Headline, DoesNotCompareRunsOfDifferentLength) {
  const RunFolder folder;
  const auto full = folder.write("a", run_lines({})),
             half = folder.write("b", run_lines({.name = "half", .losses = {1, 1}, .end = false}));
  EXPECT_NE(headline(compare_runs({read_run(full), read_run(half)})).find("none is called the best"),
            std::string::npos);
  const auto same = folder.write("c", run_lines({.name = "same", .losses = {5, 4.5, 3.9}}));
  EXPECT_EQ(headline(compare_runs({read_run(full), read_run(half), read_run(same)})),
            "Of the runs that got that far, same has the lowest validation loss after 3,000 tokens: 3.9000. Its "
            "difference to uniform, −0.1000, is from a single pair of runs, which shows nothing.");
  const auto fresh = folder.write("d", run_lines({.losses = {}}));
  EXPECT_EQ(headline(compare_runs({read_run(fresh)})), "uniform: no validation loss has been recorded yet.");
  EXPECT_EQ(headline(compare_runs({read_run(full)})), "uniform: validation loss 4.0000 after 3,000 tokens.");
}

TEST(RunsTable, HasARowForEachSeed) {
  const RunFolder folder;
  const Table table = runs_table(six_runs(folder));
  ASSERT_EQ(table.rows.size(), 6U);
  EXPECT_EQ(table.rows[2][1].text, "3");
  EXPECT_EQ(table.rows[2][5].text, "4.5300") << "training loss of uniform, seed 3";
  EXPECT_EQ(table.rows[2][6].text, "4.0300");
}

TEST(RunsTable, HasTheDifferenceOfEachPair) {
  const Table table = runs_table(compare_groups({{"base", {4.0, 4.5}}, {"low", {3.9, 4.41, 4.0}}}));
  EXPECT_EQ(table.columns[7].header, "Δ val loss");
  EXPECT_EQ(table.rows[1][7].text, "baseline");
  EXPECT_EQ(table.rows[2][7].text, "-0.1000");
  EXPECT_EQ(table.rows[3][7].text, "-0.0900");
  EXPECT_EQ(table.rows[4][7].text, kNoValue) << "seed 3, which the baseline does not have";
}

TEST(DifferenceTable, HasTheCurvesOfThePairs) {
  EXPECT_EQ(table_text(difference_table(compare_groups({{"base", {4.0, 4.5}}, {"low", {3.9, 4.42}}}))),
            "tokens               low\n"
            " 1,000   0.0000 ± 0.0000\n"
            " 3,000  -0.0900 ± 0.0141\n");
  EXPECT_TRUE(difference_table(compare_groups({{"base", {4.0}}})).rows.empty());
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

}  // namespace
}  // namespace prism
