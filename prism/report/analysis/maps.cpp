#include "prism/report/analysis/maps.h"

#include <fmt/format.h>

#include <limits>

#include "prism/core/error.h"

namespace prism {

void check_map(const Json& line, const std::string& place) {
  check_place(line, "layer", place);
  check_place(line, "head", place);
  const auto tokens = line.at("tokens").get<std::vector<std::string>>();
  const auto& weights = line.at("weights");
  PRISM_CHECK(
      weights.is_array() && weights.size() == tokens.size() && tokens.size() <= 1024, "report",
      "{}: expected a row of weights for each of at most 1024 tokens; found {} rows for {} tokens; correct the line.",
      place, weights.size(), tokens.size());
  for (const auto& row : weights)
    PRISM_CHECK(numbers_of(row).size() <= tokens.size(), "report",
                "{}: expected at most {} weights in a row; found {}; correct the line.", place, tokens.size(),
                row.size());
}

AnalysisPicture map_picture(const Json& line, const std::string& title, const std::string& reading) {
  const auto layer = line.at("layer").get<int64_t>(), head = line.at("head").get<int64_t>();
  const auto tokens = line.at("tokens").get<std::vector<std::string>>();
  HeatMap map{.description = fmt::format("{}, layer {}, head {}", title, layer, head),
              .row_label = "query",
              .column_label = "key",
              .rows = tokens,
              .columns = tokens};
  for (const auto& row : line.at("weights")) {
    auto values = numbers_of(row);
    values.resize(tokens.size(), std::numeric_limits<double>::quiet_NaN());
    map.values.insert(map.values.end(), values.begin(), values.end());
  }
  return {fmt::format("map-layer{}-head{}", layer, head), map.description, reading, map};
}

}  // namespace prism
