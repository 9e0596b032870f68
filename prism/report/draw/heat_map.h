// A grid of numbers drawn in shades, with labels on both axes: layers and heads, tokens and tokens.
//
//   HeatMap map{.description = "Entropy", .rows = {"layer 0"}, .columns = {"0", "1"}, .values = {0.2, 1.1}, .high
//   = 1.1}; page += heat_map_svg(map); write_file("entropy.svg", heat_map_file(map));
#pragma once

#include <string>
#include <vector>

namespace prism {

struct HeatMap {
  std::string description = {};  ///< text for screen readers; any text
  std::string row_label = {}, column_label = {};
  std::vector<std::string> rows = {}, columns = {};  ///< any text; long text is cut
  std::vector<double> values = {};                   ///< row-major; NaN draws no cell
  double low = 0, high = 1;                          ///< values of the palest and the strongest shade
  int decimals = 2;                                  ///< decimals of values in text
};

/// Maps with more columns are drawn at full size everywhere, since their labels would be too small to read otherwise.
inline constexpr size_t kWideHeatMap = 24;

/// An inline SVG, first row on top. Every cell shows its value on hover. Maps of more than a thousand cells do not, and
/// have only twenty shades.
/// @throws InternalError if the number of values is not rows x columns.
std::string heat_map_svg(const HeatMap& map);

/// A separate SVG file with its own background, in the page's colours. It refers to nothing outside the file.
std::string heat_map_file(const HeatMap& map);

}  // namespace prism
