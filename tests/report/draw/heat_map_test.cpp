#include "prism/report/draw/heat_map.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "prism/core/error.h"
#include "tests/report/has.h"

namespace prism {
namespace {

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

}  // namespace
}  // namespace prism
