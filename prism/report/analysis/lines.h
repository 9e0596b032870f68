// Lines of `prism analyse ... --json`: their fields, and the groups that tables, plots and pictures are made of.
//
//   check_place(line, "layer", "file.jsonl, line 3");
//   const double entropy = number_of(line.at("entropy"));
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "prism/core/fields.h"
#include "prism/report/draw/heat_map.h"

namespace prism {

/// The lines of one analysis of one model on one input, or of one comparison of models.
struct AnalysisGroup {
  std::string analysis;  ///< as named in prism analyse
  std::string model;     ///< as named on the command line; for a comparison all models
  std::string reading;   ///< describes the input
  std::vector<Json> lines;
};

struct AnalysisPicture {
  std::string name;  ///< file name without ending: "entropy", "map-layer0-head1"
  std::string title;
  std::string reading;  ///< describes the input
  HeatMap map;
};

/// The largest number of layers, of heads of a layer, and of rotary pairs: pictures draw each of them.
inline constexpr int64_t kMostPlaces = 4096;

/// A number; null, which stands for a value that JSON cannot represent, becomes NaN. @throws Json::exception for
/// others.
double number_of(const Json& value);

/// The numbers of a list. @throws Json::exception if one is none.
std::vector<double> numbers_of(const Json& list);

/// Checks that a field is an index below kMostPlaces. @param name  "layer", "head" or "pair". @param place  of the
/// line.
/// @throws InputError if it is outside. @throws Json::exception if it is no number.
void check_place(const Json& line, const char* name, const std::string& place);

/// Checks that a list has numbers, one for each head of a layer. @param what  what they are, e.g. "entropies".
/// @throws InputError for a value that is no list, or one of kMostPlaces or more. @throws Json::exception if one is no
/// number.
void check_head_values(const Json& list, const char* what, const std::string& place);

/// The number of a line's layer.
std::string layer_name(const Json& line);

/// The description of the input for a caption. A long one is reduced to its beginning and its length.
std::string input_of(const AnalysisGroup& group);

/// What a value is, for messages: "a list of 3", "text".
std::string what_is(const Json& value);

/// A map of layers by heads, from 0 to the largest finite value. The layers may have different numbers of heads.
HeatMap heads_map(const std::string& description, const std::vector<std::vector<double>>& values);

}  // namespace prism
