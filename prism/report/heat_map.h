// A grid of numbers as shades, with names on both sides: layers and heads, words and words.
//
//   HeatMap map{.description = "Entropy", .rows = {"layer 0"}, .columns = {"0", "1"}, .values = {0.2, 1.1}, .high
//   = 1.1}; page += heat_map_svg(map); write_file("entropy.svg", heat_map_file(map));
#pragma once

#include <string>
#include <vector>

namespace prism {

struct HeatMap {
  std::string description = {};  ///< what a screen reader says; any text
  std::string row_label = {}, column_label = {};
  std::vector<std::string> rows = {}, columns = {};  ///< any text; what is too long is cut
  std::vector<double> values = {};                   ///< row by row; not a number: no cell
  double low = 0, high = 1;                          ///< the palest and the strongest shade
  int decimals = 2;                                  ///< of a value in words
};

/// Maps of more columns are drawn at full size, wherever they stand: their words would be too small to read.
inline constexpr size_t kWideHeatMap = 24;

/// An inline SVG, the first row on top. Every cell says its value when it is pointed at; those of more than a thousand
/// cells do not, and have twenty shades.
/// @throws InternalError for values that are not rows x columns.
std::string heat_map_svg(const HeatMap& map);

/// The same on paper of its own, in the page's colours; nothing outside the file is referred to.
std::string heat_map_file(const HeatMap& map);

}  // namespace prism
