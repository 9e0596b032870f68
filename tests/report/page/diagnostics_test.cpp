#include "prism/report/page/diagnostics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "prism/report/draw/number_text.h"
#include "tests/core/message_of.h"
#include "tests/report/run_folder.h"

namespace prism {
namespace {

std::string diagnostics_line(int64_t tokens, double entropy, const std::string& rms) {
  return fmt::format(
      R"({{"kind":"diagnostics","step":{0},"tokens":{1},"entropy":[{{"layer":0,"entropy":{2}}},{{"layer":1,"entropy":{3}}}],)"
      R"("activations":[{{"residual_rms":1,"dead_units":[0.5,0]}},{{"residual_rms":2,"dead_units":[]}},)"
      R"({{"residual_rms":{4},"dead_units":[]}}],"parameters":[{{"name":"a","gradient":1,"weight":2,"update":0.1}},)"
      R"({{"name":"b","gradient":1,"weight":2,"update":0.3}},{{"name":"c","gradient":null,"weight":2,"update":null}}]}})"
      "\n",
      tokens / 100, tokens, entropy, entropy / 2, rms);
}

Comparison two_seeds(const RunFolder& folder) {
  std::vector<Run> runs;
  for (const int64_t seed : {1, 2})
    runs.push_back(read_run(
        folder.write(fmt::format("r{}", seed),
                     run_lines({.name = "r",
                                .seed = seed,
                                .more = diagnostics_line(1000, 2 + 0.2 * static_cast<double>(seed), "3") +
                                        diagnostics_line(3000, static_cast<double>(seed), seed == 1 ? "4" : "null") +
                                        "{\"kind\":\"warning\",\"tokens\":3000,\"text\":\"it <grows>\"}\n"}),
                     fmt::format(R"({{"seed":{}}})", seed))));
  return compare_runs(std::move(runs));
}

TEST(Diagnostics, AreReadFromRecords) {
  const RunFolder folder;
  const prism::Run run = two_seeds(folder).groups[0].runs[0];
  ASSERT_EQ(run.diagnostics.size(), 2u);
  EXPECT_EQ(run.diagnostics[0].trained, 1000);
  EXPECT_DOUBLE_EQ(run.diagnostics[0].entropy[1], 1.1);
  EXPECT_DOUBLE_EQ(run.diagnostics[0].update, 0.2) << "the median of those that are finite";
  EXPECT_DOUBLE_EQ(run.diagnostics[0].dead_units[0], 0.25);
  EXPECT_TRUE(std::isnan(run.diagnostics[0].dead_units[1]));
  EXPECT_TRUE(run.diagnostics[0].parameters.empty()) << "only the last keep them";
  EXPECT_EQ(run.diagnostics[1].parameters.size(), 3u);
  ASSERT_EQ(run.warnings.size(), 1u);
  EXPECT_EQ(run.warnings[0].text, "it <grows>");
}

TEST(Diagnostics, OfARunThatWasResumedReplaceWhatStoodThere) {
  const RunFolder folder;
  const prism::Run run =
      read_run(folder.write("r", run_lines({.more = diagnostics_line(1000, 1, "1") + diagnostics_line(2000, 2, "1") +
                                                    diagnostics_line(2000, 3, "1")})));
  ASSERT_EQ(run.diagnostics.size(), 2u);
  EXPECT_EQ(run.diagnostics[1].entropy[0], 3);
}

TEST(Diagnostics, BecomePlotsOverTokensAndLayers) {
  const RunFolder folder;
  const Comparison comparison = two_seeds(folder);
  const auto plots = diagnostics_plots(comparison);
  ASSERT_EQ(plots.size(), 5u);
  for (const auto& plot : plots) EXPECT_STRNE(diagnostics_caption(plot.id), "") << plot.id;
  const auto& line = plots[0].series.back();
  ASSERT_EQ(line.points.size(), 2u);
  EXPECT_DOUBLE_EQ(line.points[0].y, (2.2 + 1.1 + 2.4 + 1.2) / 4);
  const auto& residual = plots[1].series.back();
  ASSERT_EQ(residual.points.size(), 1u) << "one seed's last is not a number";
  const auto& layers = plots[3].series.back();
  ASSERT_EQ(layers.points.size(), 2u);
  EXPECT_DOUBLE_EQ(layers.points[0].y, 1.5);
  const RunFolder plain;
  EXPECT_TRUE(diagnostics_plots(six_runs(plain)).empty());
}

TEST(Diagnostics, BecomeTables) {
  const RunFolder folder;
  const Comparison comparison = two_seeds(folder);
  const Table layers = diagnostics_table(comparison);
  ASSERT_EQ(layers.rows.size(), 3u);
  EXPECT_EQ(layers.rows[0][1].text, "0");
  EXPECT_EQ(layers.rows[0][3].text, "25.0");
  EXPECT_EQ(layers.rows[2][1].text, "LM head");
  EXPECT_EQ(layers.rows[2][2].text, "4.000");
  EXPECT_EQ(layers.rows[2][4].text, kNoValue);
  const auto parameters = parameter_tables(comparison);
  ASSERT_EQ(parameters.size(), 1u);
  EXPECT_EQ(parameters[0].rows[1][3].text, "0.3");
  EXPECT_EQ(warnings_table(comparison).rows.size(), 2u);
  const RunFolder broken;
  EXPECT_NE(
      message_of([&] {
        read_run(broken.write("r", run_lines({.more = "{\"kind\":\"diagnostics\",\"tokens\":1,\"entropy\":[1]}\n"})));
      }).find("list of objects"),
      std::string::npos);
}

}  // namespace
}  // namespace prism
