#include "prism/report/analysis/spectrum.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "prism/core/files.h"
#include "tests/report/analysis/made_lines.h"

namespace prism {
namespace {

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

TEST(SpectrumLines, OfAHeadBecomeFiles) {
  const ShadeGrid grid{.rows = 2, .columns = 2, .shares = {1, kNoShare, 0.25, 0.75}};
  const auto files = head_figures(spectrum_line(2, 1, 3), {{"high", grid}, {"full", grid}}, "gnuplot");
  std::vector<std::string> names;
  for (const auto& [name, svg] : files) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"gain.svg", "energy.svg", "high.svg", "full.svg"}));
  EXPECT_CONTAINS(files[1].svg, "layer 2, head 1");
  EXPECT_CONTAINS(files[2].svg, "high: where attention goes, layer 2, head 1");
  const RunFolder folder;
  write_figures(files, folder.path("figures"));
  EXPECT_EQ(read_file(folder.path("figures/full.svg")), files[3].svg);
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
    EXPECT_NE(refusal(line.dump()).find("lacks a field of its analysis, or has one of the wrong type; correct it"),
              std::string::npos)
        << field;
  }
  EXPECT_NE(with({{"block_size", 0}}).find("at least 1; found 0"), std::string::npos);
  EXPECT_NE(with({{"zones", Json::array()}}).find("dead, transition, semantic and full"), std::string::npos);
  EXPECT_NE(with({{"pairs", 1}}).find("list of at most"), std::string::npos);
  EXPECT_NE(with({{"pairs", {{{"pair", 1e9}}}}}).find("a pair from 0 to"), std::string::npos);
  EXPECT_NE(with({{"pairs", {{{"pair", 0}}}}}).find("lacks a field"), std::string::npos);
}

}  // namespace
}  // namespace prism
