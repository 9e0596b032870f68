#include "prism/report/analysis/lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "prism/core/error.h"
#include "prism/core/text/printable.h"

namespace prism {

double number_of(const Json& value) {
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

std::vector<double> numbers_of(const Json& list) {
  std::vector<double> values;
  for (const auto& value : list) values.push_back(number_of(value));
  return values;
}

void check_place(const Json& line, const char* name, const std::string& place) {
  const auto value = line.at(name).get<int64_t>();
  PRISM_CHECK(value >= 0 && value < kMostPlaces, "report",
              "{}: expected a {} from 0 to {}; found {}; correct the line.", place, name, kMostPlaces - 1, value);
}

void check_head_values(const Json& list, const char* what, const std::string& place) {
  PRISM_CHECK(list.is_array() && numbers_of(list).size() < kMostPlaces, "report",
              "{}: expected a list of fewer than {} {} of heads; found {}; correct the line.", place, kMostPlaces, what,
              what_is(list));
}

std::string layer_name(const Json& line) {
  return fmt::format("{}", line.at("layer").get<int64_t>());
}

std::string input_of(const AnalysisGroup& group) {
  constexpr size_t kMostColumns = 100, kBeginning = 60;
  if (display_width(group.reading) <= kMostColumns) return plain_line(group.reading);
  const size_t amount = group.reading.rfind(", ");
  return short_line(group.reading, kBeginning) +
         (amount == std::string::npos ? "" : short_line(group.reading.substr(amount), kBeginning));
}

std::string what_is(const Json& value) {
  if (value.is_array()) return fmt::format("a list of {}", value.size());
  return value.type_name();
}

HeatMap heads_map(const std::string& description, const std::vector<std::vector<double>>& values) {
  HeatMap map{.description = description, .row_label = "layer", .column_label = "head"};
  size_t most = 0;
  for (const auto& layer : values) most = std::max(most, layer.size());
  for (size_t h = 0; h < most; ++h) map.columns.push_back(std::to_string(h));
  for (size_t l = 0; l < values.size(); ++l) {
    map.rows.push_back(std::to_string(l));
    for (size_t h = 0; h < most; ++h)
      map.values.push_back(h < values[l].size() ? values[l][h] : std::numeric_limits<double>::quiet_NaN());
  }
  map.high = 0;
  for (const double value : map.values)
    if (std::isfinite(value)) map.high = std::max(map.high, value);
  return map;
}

}  // namespace prism
