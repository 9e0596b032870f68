#include "prism/report/analysis/analysis.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <optional>

#include "prism/core/error.h"
#include "tests/core/message_of.h"
#include "tests/report/has.h"
#include "tests/report/run_folder.h"

namespace prism {
namespace {

AnalysisRecords records_of(const std::vector<std::string>& lines) {
  AnalysisRecords records;
  for (const auto& line : lines) records.add(Json::parse(line), "here");
  return records;
}

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

/// The message with which a file of this one line is refused.
std::string refusal(const std::string& line) {
  const RunFolder folder;
  const auto file = folder.path("line.jsonl");
  std::ofstream(file) << line << "\n";
  return message_of([&] { read_analysis_records({file}); });
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
    EXPECT_NE(without(layer, field).find("lacks a field of its analysis; correct it"), std::string::npos) << field;
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

/// A line of a head with two pairs.
Json spectrum_line(int64_t layer, int64_t head, double energy, double gain = 0.5) {
  const auto with_energy = [&](Json fields) {
    for (const char* side : {"q", "k"}) fields[side] = energy;
    for (const char* side : {"q_pooled", "k_pooled"}) fields[side] = energy / 2;
    return fields;
  };
  Json line = {{"analysis", "spectrum"}, {"model", "m"},    {"reading", "t"},         {"layer", layer},
               {"head", head},           {"block_size", 8}, {"zones", Json::array()}, {"pairs", Json::array()}};
  for (const char* zone : {"dead", "transition", "semantic", "full"})
    line["zones"].push_back(with_energy({{"zone", zone}, {"pairs", 1}}));
  for (int64_t pair = 0; pair < 2; ++pair) line["pairs"].push_back(with_energy({{"pair", pair}, {"gain", gain}}));
  return line;
}

TEST(SpectrumLines, BecomeATableOfZonesAndPlotsOverPairs) {
  const auto records = records_of({spectrum_line(0, 0, 1).dump(), spectrum_line(0, 1, 3).dump(),
                                   spectrum_line(1, 0, 5).dump(), spectrum_line(2, 0, 5, 0.75).dump()});
  const auto tables = analysis_tables(records);
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_EQ(tables[0].caption, "Spectrum: m");
  ASSERT_EQ(tables[0].rows.size(), 4u);
  EXPECT_EQ(tables[0].rows[1][2].text, "1 + 1 + 1");
  EXPECT_EQ(tables[0].rows[1][3].text, "3.000 → 1.500");
  EXPECT_NE(tables[0].notes[0].find("Input: t, blocks of 8 tokens."), std::string::npos) << tables[0].notes[0];
  const auto plots = analysis_plots(records);
  ASSERT_EQ(plots.size(), 4u) << "gains, and the energy of each layer";
  EXPECT_EQ(plots[0].labels, (std::vector<std::string>{"layers 0 and 1", "layer 2"}));
  ASSERT_EQ(plots[0].plot.series.size(), 2u);
  EXPECT_EQ(plots[0].plot.series[1].points[1].y, 0.75);
  EXPECT_EQ(plots[1].plot.id, "energy-layer0");
  EXPECT_NE(plots[1].plot.description.find("mean over the heads of layer 0 of m"), std::string::npos);
  ASSERT_EQ(plots[1].plot.series.size(), 4u);
  EXPECT_EQ(plots[1].plot.series[0].points[1].x, 2);
  EXPECT_EQ(plots[1].plot.series[0].points[1].y, 2) << "mean over both heads";
  EXPECT_EQ(plots[1].plot.series[1].points[1].y, 1);
}

TEST(SpectrumLines, OfOtherBlocksAreAnotherTableWithPlotsOfTheirOwn) {
  Json other = spectrum_line(0, 0, 1);
  other["block_size"] = 16;
  const auto records = records_of({spectrum_line(0, 0, 1).dump(), other.dump()});
  EXPECT_EQ(analysis_tables(records).size(), 2u);
  const auto plots = analysis_plots(records);
  ASSERT_EQ(plots.size(), 4u);
  EXPECT_EQ(plots[2].plot.id, "gain-2");
  EXPECT_EQ(plots[3].plot.id, "energy-layer0-2");
}

TEST(SpectrumLines, ThatAreMalformedAreRefusedWithASentence) {
  const auto with = [](const Json& fields) {
    Json line = spectrum_line(0, 0, 1);
    line.update(fields);
    return refusal(line.dump());
  };
  EXPECT_EQ(with(Json::object()), "");
  for (const char* field : {"model", "reading", "layer", "head", "block_size", "zones", "pairs"}) {
    Json line = spectrum_line(0, 0, 1);
    line.erase(field);
    EXPECT_NE(refusal(line.dump()).find("lacks a field of its analysis; correct it"), std::string::npos) << field;
  }
  EXPECT_NE(with({{"block_size", 0}}).find("at least 1; found 0"), std::string::npos);
  EXPECT_NE(with({{"zones", Json::array()}}).find("dead, transition, semantic and full"), std::string::npos);
  EXPECT_NE(with({{"pairs", 1}}).find("list of at most"), std::string::npos);
  EXPECT_NE(with({{"pairs", {{{"pair", 1e9}}}}}).find("a pair from 0 to"), std::string::npos);
  EXPECT_NE(with({{"pairs", {{{"pair", 0}}}}}).find("lacks a field"), std::string::npos);
}

TEST(HeatMap, OfManyCellsDrawsAPathForEachShade) {
  const std::vector<std::string> names(40, "x");
  HeatMap map{.description = "many", .row_label = "row", .column_label = "column", .rows = names, .columns = names};
  map.values.assign(1600, 1);
  map.values[0] = 0;
  map.values[1] = 0.5;
  map.values[2] = NAN;
  const std::string svg = heat_map_svg(map);
  EXPECT_EQ(count(svg, "<path"), 3u);
  EXPECT_EQ(count(svg, "z"), 1599u) << "a closed square for each number";
  for (const char* shade : {"<path class=\"ground\"", "fill-opacity=\"0.50\" d=\"M", "fill-opacity=\"1.00\" d=\"M"})
    EXPECT_EQ(count(svg, shade), 1u) << shade;
}

TEST(HeatMap, DrawsACellForEveryNumberAndEscapesNames) {
  HeatMap map{.description = "a <picture>",
              .row_label = "row",
              .column_label = "column",
              .rows = {"<r>", "a-name-that-is-far-too-long"},
              .columns = {"x", "y"},
              .values = {0, 0.5, NAN, 1}};
  const std::string svg = heat_map_svg(map), file = heat_map_file(map);
  EXPECT_EQ(count(svg, "<title>"), 3u);
  EXPECT_NE(svg.find("&lt;r&gt;, x: 0.00"), std::string::npos) << svg;
  EXPECT_EQ(svg.find("<r>"), std::string::npos);
  EXPECT_NE(svg.find("a-name-that-is-…"), std::string::npos) << svg;
  EXPECT_NE(svg.find("fill-opacity=\"0.500\""), std::string::npos);
  EXPECT_NE(file.find("xmlns"), std::string::npos);
  EXPECT_NE(file.find("--series-0"), std::string::npos);
  map.values.pop_back();
  EXPECT_THROW(heat_map_svg(map), InternalError);
}

std::string budgets_line(const char* by, const char* group, int layer, double share) {
  return Json{{"analysis", "budgets"},
              {"model", "m"},
              {"reading", "t"},
              {"kind", "layer"},
              {"layer", layer},
              {"heads", 2},
              {"by", by},
              {"group", group},
              {"examples", 9},
              {"share", share},
              {"share_sd", 0.125},
              {"entropy", 0.5},
              {"kept_share", 0.5},
              {"entropy_sd", 0},
              {"head_kept", {1, 0.25}},
              {"head_probability", {0.75, 0.25}}}
      .dump();
}

const char* const kSavings =
    R"({"analysis":"budgets","model":"m","reading":"t","kind":"savings","texts":64,"batch":32,"tokens":20.5,"share":0.085,)"
    R"("kept_share":0.125,"with":{"parameters":110,"attention_flops":250,"model_flops":1000,"ms":0.5,"memory_bytes":100},)"
    R"("without":{"parameters":100,"attention_flops":1000,"model_flops":2000,"ms":1,"memory_bytes":0}})";
const char* const kBudgetText =
    R"({"analysis":"budgets","model":"m","reading":"\"a <b>\"","kind":"text","layer":1,"label":"neutral","share":0.5,)"
    R"("probability":[0.2,0.8],"kept":[1]})";
const char* const kBudgetMap =
    R"({"analysis":"budgets","model":"m","reading":"\"a <b>\"","kind":"map","layer":1,"head":1,"probability":0.8,)"
    R"("is_kept":true,"tokens":["a","b"],"weights":[[0.5,0.5],[0.25,0.75]]})";

TEST(BudgetLines, BecomeTablesPlotsAndPictures) {
  const auto records = records_of({budgets_line("all", "all", 0, 0.25), budgets_line("all", "all", 1, 0.75),
                                   budgets_line("class", "yes", 0, 0.5), budgets_line("class", "no", 0, 0.5), kSavings,
                                   kBudgetText, kBudgetMap});
  const auto tables = analysis_tables(records);
  ASSERT_EQ(tables.size(), 4u);
  EXPECT_EQ(tables[0].rows[1][2].text, "0.750");
  EXPECT_EQ(tables[0].rows[1][2].spread, "0.125");
  EXPECT_EQ(tables[1].rows[1][1].text, "no");
  EXPECT_EQ(tables[2].rows[0][1].text, "0.0850");
  EXPECT_EQ(tables[2].rows[0][3].text, "") << "s is no cost";
  EXPECT_EQ(tables[2].rows[1][3].text, "87.5") << "one of eight heads";
  EXPECT_EQ(tables[2].rows[2][3].text, "-10.0") << "budgets add parameters";
  EXPECT_EQ(tables[2].rows[3][3].text, "75.0");
  EXPECT_EQ(tables[2].rows[6][3].text, "–");
  EXPECT_EQ(tables[3].rows[0][2].text, "1");
  const auto plots = analysis_plots(records);
  ASSERT_EQ(plots.size(), 4u);
  EXPECT_EQ(plots[0].plot.id, "budgets-share-all");
  EXPECT_EQ(plots[3].plot.id, "budgets-entropy-class");
  EXPECT_EQ(plots[3].labels, (std::vector<std::string>{"yes", "no"}));
  const auto pictures = analysis_pictures(records);
  ASSERT_EQ(pictures.size(), 2u);
  EXPECT_EQ(pictures[0].map.rows, (std::vector<std::string>{"yes", "no"}));
  EXPECT_EQ(pictures[0].map.values[1], 0.25);
  EXPECT_EQ(pictures[1].name, "map-layer1-head1-computed");
  EXPECT_CONTAINS(pictures[1].title, "p 0.800, computed");
  EXPECT_EQ(pictures[1].map.values[1], 0.5) << "a token attends to those after it";
}

TEST(BudgetLines, ThatLackAFieldAreRefused) {
  AnalysisRecords records;
  for (const char* text : {kSavings, kBudgetText, kBudgetMap}) {
    const Json whole = Json::parse(text);
    for (const char* field : {"with", "share", "kept", "weights", "probability"}) {
      if (!whole.contains(field)) continue;
      Json line = whole;
      line.erase(field);
      EXPECT_THROW(records.add(line, "here"), std::exception) << field;
    }
  }
  Json line = Json::parse(kSavings);
  line["kind"] = "other";
  EXPECT_REFUSED(records.add(line, "here"), "expected a line of kind layer, savings, text or map");
  EXPECT_TRUE(records.empty());
}

}  // namespace
}  // namespace prism
