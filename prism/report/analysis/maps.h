// Pictures of the attention maps of `prism analyse maps --json`, which has a line for each head of a text.
//
//   page += heat_map_svg(map_picture(line, "Attention: runs/prism", input_of(group)).map);
#pragma once

#include <string>
#include <vector>

#include "prism/report/analysis/lines.h"

namespace prism {

/// Checks that a line has all fields that are drawn. @throws InputError or Json::exception if not.
void check_map(const Json& line, const std::string& place);

/// A map with a row for each query and a column for each key. @param title  of the map, before its layer and head.
AnalysisPicture map_picture(const Json& line, const std::string& title, const std::string& reading);

}  // namespace prism
