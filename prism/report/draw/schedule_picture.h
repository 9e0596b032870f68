// A picture of the head schedule: a row for each layer and a box for each head, as wide as the head. A progressive
// schedule shows the narrowing shape of arXiv 2606.27449, figure 1.
//
//   page += schedule_svg(run.layers, "prism");
#pragma once

#include <string>
#include <vector>

#include "prism/report/compare/run.h"

namespace prism {

/// "2 x 128" is heads times width. Key/value heads are added if there are fewer: "8 x 32, 2 kv".
std::string layer_text(const LayerRecord& layer);

/// An inline SVG, first layer on top. The first head of each layer has a strong colour, so that its edge shows the
/// schedule.
///
/// @param layers  at least one.
/// @param label   name of the schedule, for screen readers.
std::string schedule_svg(const std::vector<LayerRecord>& layers, const std::string& label);

}  // namespace prism
