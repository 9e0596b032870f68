// The head schedule as a picture: one row of boxes for each layer, one box for each head, as wide as the head. A
// progressive schedule shows the narrowing shape of arXiv 2606.27449, figure 1.
//
//   page += schedule_svg(run.layers, "prism");
#pragma once

#include <string>
#include <vector>

#include "prism/report/run.h"

namespace prism {

/// "2 x 128" heads times width, with key/value heads where they are fewer: "8 x 32, 2 kv".
std::string layer_text(const LayerRecord& layer);

/// An inline SVG, first layer on top; the first head of each layer is drawn strong, so that its edge is the schedule.
///
/// @param layers  at least one.
/// @param label   whose schedule it is; for screen readers.
std::string schedule_svg(const std::vector<LayerRecord>& layers, const std::string& label);

}  // namespace prism
