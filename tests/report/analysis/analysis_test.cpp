#include "prism/report/analysis/analysis.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <optional>

#include "prism/core/error.h"
#include "tests/core/message_of.h"
#include "tests/report/analysis/made_lines.h"
#include "tests/report/run_folder.h"

namespace prism {
namespace {

const char* const kEntropy =
    R"({"analysis":"entropy","model":"runs/<a>","reading":"t","layer":0,"heads":2,"entropy":0.75,"head_entropies":[0.5,1.0]})";
const char* const kWider =
    R"({"analysis":"entropy","model":"runs/<a>","reading":"t","layer":1,"heads":3,"entropy":2,"head_entropies":[1,2,3]})";
/// The same head on another text.
const char* const kOtherMap =
    R"({"analysis":"maps","model":"m","reading":"u","layer":2,"head":1,"tokens":["a","b"],"weights":[[1],[0.5,0.5]]})";
const char* const kMap =
    R"({"analysis":"maps","model":"m","reading":"t","layer":2,"head":1,"tokens":[" the","<b>"],"weights":[[1],[0.25,0.75]]})";

std::string heads_line(int layer, int head, double previous) {
  return Json{{"analysis", "heads"}, {"model", "m"},         {"reading", "t"},      {"layer", layer},
              {"head", head},        {"previous", previous}, {"first", 0.5},        {"self", 0.1},
              {"same", 0},           {"punctuation", 0.2},   {"induction", nullptr}}
      .dump();
}

TEST(AnalysisRecords, BecomeTablesOfTheirKind) {
  const auto tables = analysis_tables(records_of(
      {kEntropy, kWider, heads_line(0, 0, 0.25), heads_line(0, 1, 0.75),
       R"({"analysis":"norms","model":"m","reading":"t","layer":0,"residual_rms":1.5,"dead_units":[0.25,0]})",
       R"({"analysis":"norms","model":"m","reading":"t","layer":1,"reader":"head","residual_rms":3,"dead_units":[]})",
       R"({"analysis":"gradients","model":"m","reading":"t","name":"w","gradient":0.5,"weight":2})", kMap}));
  ASSERT_EQ(tables.size(), 4u);
  EXPECT_EQ(tables[0].rows.size(), 2u);
  EXPECT_EQ(tables[0].rows[0][3].text, "0.500  1.000");
  EXPECT_EQ(tables[1].rows[1][2].text, "0.750");
  EXPECT_TRUE(tables[1].rows[1][2].strong);
  EXPECT_FALSE(tables[1].rows[0][2].strong);
  EXPECT_EQ(tables[2].rows[0][2].text, "25.0  0.0");
  EXPECT_EQ(tables[2].rows[0][0].text, "0");
  EXPECT_EQ(tables[2].rows[1][0].text, "LM head");
  EXPECT_EQ(tables[3].rows[0][3].text, "0.25");
}

TEST(AnalysisRecords, BecomePicturesWithNamesOfTheirOwn) {
  const auto pictures = analysis_pictures(records_of({kEntropy, kWider, kMap, kOtherMap, heads_line(1, 0, 0.5)}));
  ASSERT_EQ(pictures.size(), 3u + 6u);
  EXPECT_EQ(pictures[0].name, "entropy");
  EXPECT_EQ(pictures[1].name, "map-layer2-head1");
  EXPECT_EQ(pictures[2].name, "map-layer2-head1-2");
  ASSERT_EQ(pictures[0].map.values.size(), 6u);
  EXPECT_TRUE(std::isnan(pictures[0].map.values[2])) << "the first layer has two heads";
  EXPECT_EQ(pictures[0].map.high, 3);
  EXPECT_EQ(pictures[1].map.values[2], 0.25);
  EXPECT_TRUE(std::isnan(pictures[1].map.values[1]));
  EXPECT_EQ(pictures[3].map.rows.size(), 2u) << "a layer without lines has a row without cells";
}

TEST(AnalysisRecords, CountALineThatIsRepeatedAsItsLastTime) {
  const auto tables =
      analysis_tables(records_of({heads_line(0, 0, 0.25), heads_line(0, 1, 0.5), heads_line(0, 0, 0.75)}));
  ASSERT_EQ(tables.size(), 1u);
  ASSERT_EQ(tables[0].rows.size(), 2u);
  EXPECT_EQ(tables[0].rows[0][2].text, "0.750");
}

TEST(AnalysisRecords, DrawGradientsByLayersAndTheStreamOfEveryModel) {
  const auto gradient = [](std::optional<int> layer, const char* part, double value) {
    Json line = {{"analysis", "gradients"}, {"model", "m"}, {"reading", "t"}, {"name", "a name"}};
    if (layer) line.update({{"layer", *layer}, {"part", part}});
    line.update({{"gradient", value}, {"weight", 2}});
    return line.dump();
  };
  const auto norm = [](const char* model, int layer, double rms) {
    return Json({{"analysis", "norms"},
                 {"model", model},
                 {"reading", "t"},
                 {"layer", layer},
                 {"residual_rms", rms},
                 {"dead_units", Json::array()}})
        .dump();
  };
  const auto records =
      records_of({gradient({}, "", 1), gradient(0, "mlp.up_proj", 0.2), gradient(1, "mlp.up_proj.bias", 20),
                  norm("m", 0, 1.5), norm("m", 1, 2.5), norm("n", 0, 3)});
  const auto pictures = analysis_pictures(records);
  ASSERT_EQ(pictures.size(), 1u);
  const HeatMap& map = pictures[0].map;
  EXPECT_EQ(map.columns, (std::vector<std::string>{"mlp.up_proj", "mlp.up_proj.bias"}));
  EXPECT_NEAR(map.values[0], -1, 1e-12);
  EXPECT_NEAR(map.values[3], 1, 1e-12);
  EXPECT_TRUE(std::isnan(map.values[1]));
  const auto plots = analysis_plots(records);
  ASSERT_EQ(plots.size(), 1u);
  EXPECT_EQ(plots[0].labels, (std::vector<std::string>{"m", "n"}));
  ASSERT_EQ(plots[0].plot.series.size(), 2u);
  EXPECT_EQ(plots[0].plot.series[0].points[1].y, 2.5);
  EXPECT_TRUE(analysis_plots(records_of({kEntropy})).empty());
}

TEST(AnalysisRecords, TellTextsOfOneBeginningAndLengthApart) {
  const std::string beginning(200, 'a');
  const auto line = [&](const char* end, double rms) {
    return Json({{"analysis", "norms"},
                 {"model", "m"},
                 {"reading", fmt::format("\"{}{}\", 1 sequence of 9 tokens", beginning, end)},
                 {"layer", 0},
                 {"residual_rms", rms},
                 {"dead_units", Json::array()}})
        .dump();
  };
  const auto records = records_of({line("b", 1), line("c", 2)});
  const auto tables = analysis_tables(records);
  ASSERT_EQ(tables.size(), 2u);
  EXPECT_NE(tables[0].notes[0].find("…, 1 sequence of 9 tokens."), std::string::npos) << tables[0].notes[0];
  EXPECT_LT(tables[0].notes[0].size(), 400u);
  const auto plots = analysis_plots(records);
  ASSERT_EQ(plots.size(), 1u);
  EXPECT_TRUE(plots[0].labels[1].starts_with("m, \"aaa")) << plots[0].labels[1];
}

TEST(AnalysisRecords, RefuseOtherLines) {
  EXPECT_NE(refusal(R"({"analysis":"unknown"})").find("one of unknown"), std::string::npos);
  EXPECT_NE(refusal("[1]"), "");
  EXPECT_NE(refusal(R"({"analysis":"entropy","layer":0})"), "");
  EXPECT_NE(refusal(R"({"analysis":"entropy","layer":-1,"entropy":1,"head_entropies":[1]})").find("from 0 to"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"analysis":"heads","layer":0,"head":99999999})").find("from 0 to"), std::string::npos);
  EXPECT_NE(
      refusal(R"({"analysis":"maps","layer":0,"head":0,"tokens":["a"],"weights":[[1],[1]]})").find("2 rows for 1"),
      std::string::npos);
  EXPECT_NE(refusal(R"({"analysis":"maps","layer":0,"head":0,"tokens":["a"],"weights":[[1,1]]})").find("at most 1"),
            std::string::npos);
  const RunFolder folder;
  const auto file = folder.path("lines.jsonl");
  std::ofstream(file) << "\n";
  EXPECT_NE(message_of([&] { read_analysis_records({file}); }).find("found none"), std::string::npos);
  std::ofstream(file) << kEntropy << "\n{\"analysis\":\"norms\"}\n";
  EXPECT_NE(message_of([&] { read_analysis_records({file}); }).find("line 2"), std::string::npos);
}

}  // namespace
}  // namespace prism
