#include "prism/report/analysis/distance.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/report/analysis/made_lines.h"

namespace prism {
namespace {

/// A line of a model of two layers, with 1 and 2 heads.
Json distance_model(const std::string& model, double first) {
  return {{"analysis", "attention-distance"},
          {"reading", "data (valid), 4 sequences of 32 tokens"},
          {"kind", "model"},
          {"model", model},
          {"layers", {{{"head_distances", {first}}}, {{"head_distances", {2, 6}}}}}};
}

Json arm_layer(int64_t heads, double distance, int64_t seeds) {
  return {{"heads", heads}, {"head_dim", 8 / heads}, {"distance", distance},
          {"seed_sd", 0.5}, {"head_sd", 1.5},        {"seeds", seeds}};
}

/// A line of a layer of two models against two others.
Json distance_layer(int64_t layer) {
  return {{"analysis", "attention-distance"},
          {"reading", "data (valid), 4 sequences of 32 tokens"},
          {"kind", "layer"},
          {"models", {"a1", "a2"}},
          {"against_models", {"b1", "b2"}},
          {"queries", 64},
          {"layer", layer},
          {"arm", arm_layer(1, 5 + static_cast<double>(layer), 2)},
          {"against", arm_layer(2, 7, 2)},
          {"difference", -2},
          {"difference_sd", 0.25},
          {"paired", true},
          {"same_heads", layer == 1}};
}

TEST(AttentionDistanceLines, OfTwoArmsBecomeATableAndAPlotWithBands) {
  const auto records = records_of({distance_layer(0).dump(), distance_layer(1).dump()});
  const auto tables = analysis_tables(records);
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_EQ(tables[0].caption, "Attention distance: a1 and 1 more against b1 and 1 more");
  ASSERT_EQ(tables[0].rows.size(), 2u);
  const auto& row = tables[0].rows[0];
  EXPECT_EQ(row[1].text, "1 x 8");
  EXPECT_EQ(row[2].text, "5.00");
  EXPECT_EQ(row[2].spread, "0.50");
  EXPECT_EQ(row[4].text, "7.00");
  EXPECT_EQ(row[5].text, "-2.00");
  EXPECT_EQ(row[5].spread, "0.25");
  EXPECT_EQ(row[6].text, "yes");
  EXPECT_EQ(tables[0].rows[1][6].text, "");
  EXPECT_NE(tables[0].notes[0].find("64 queries"), std::string::npos);
  EXPECT_NE(tables[0].notes[0].find("Input: data (valid), 4 sequences of 32 tokens."), std::string::npos);
  EXPECT_EQ(tables[0].notes[1], "The difference is paired: a1 - b1 and a2 - b2.");
  const auto plots = analysis_plots(records);
  ASSERT_EQ(plots.size(), 1u);
  EXPECT_EQ(plots[0].labels, (std::vector<std::string>{"a1 and 1 more", "b1 and 1 more"}));
  ASSERT_EQ(plots[0].plot.series.size(), 4u) << "a band and a line for each arm";
  EXPECT_EQ(plots[0].plot.series[0].style, PlotStyle::kBand);
  EXPECT_EQ(plots[0].plot.series[2].points[1].y, 6);
  EXPECT_EQ(plots[0].plot.series[2].points[1].y_bar.high, 6.5);
  EXPECT_TRUE(analysis_pictures(records).empty());
}

TEST(AttentionDistanceLines, OfOneModelBecomeATableAndAPictureOfItsHeads) {
  Json layer = distance_layer(1);
  layer.update({{"models", {"a"}}, {"against_models", Json::array()}});
  layer.update(arm_layer(2, 4, 1));
  const auto records = records_of({distance_model("a", 3).dump(), layer.dump()});
  EXPECT_EQ(records.groups.size(), 1u);
  const auto tables = analysis_tables(records);
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_EQ(tables[0].caption, "Attention distance: a");
  ASSERT_EQ(tables[0].rows[0].size(), 4u);
  EXPECT_EQ(tables[0].rows[0][2].spread, "") << "one model scatters over nothing";
  EXPECT_EQ(tables[0].rows[0][3].text, "1.50");
  const auto pictures = analysis_pictures(records);
  ASSERT_EQ(pictures.size(), 1u);
  EXPECT_EQ(pictures[0].map.values[0], 3);
  EXPECT_TRUE(std::isnan(pictures[0].map.values[1]));
  EXPECT_EQ(pictures[0].map.high, 6);
}

TEST(AttentionDistanceLines, ThatAreMalformedAreRefusedWithASentence) {
  const auto with = [](Json line, const Json& fields) {
    line.update(fields);
    return refusal(line.dump());
  };
  const auto without = [](Json line, const char* field) {
    line.erase(field);
    return refusal(line.dump());
  };
  const Json layer = distance_layer(0), model = distance_model("a", 3);
  EXPECT_EQ(refusal(layer.dump() + "\n" + model.dump()), "");
  for (const char* field : {"reading", "kind", "models", "against_models", "queries", "layer", "arm", "against",
                            "difference", "difference_sd", "paired", "same_heads"})
    EXPECT_NE(without(layer, field).find("lacks a field of its analysis, or has one of the wrong type; correct it"),
              std::string::npos)
        << field;
  for (const char* field : {"model", "layers"})
    EXPECT_NE(without(model, field).find("lacks a field"), std::string::npos) << field;
  EXPECT_NE(with(layer, {{"kind", "other"}}).find("kind model or layer; found other"), std::string::npos);
  EXPECT_NE(with(layer, {{"models", Json::array()}}).find("models that were measured; found none"), std::string::npos);
  EXPECT_NE(with(layer, {{"against_models", {"b"}}}).find("found 2 and 1"), std::string::npos);
  EXPECT_NE(with(layer, {{"layer", -1}}).find("from 0 to"), std::string::npos);
  EXPECT_NE(with(layer, {{"arm", {{"heads", 1}}}}).find("lacks a field"), std::string::npos);
  EXPECT_NE(with(model, {{"layers", Json::array()}}).find("list of 1 to"), std::string::npos);
  EXPECT_NE(with(model, {{"layers", {{{"head_distances", 1}}}}}).find("distances of heads"), std::string::npos);
}

}  // namespace
}  // namespace prism
