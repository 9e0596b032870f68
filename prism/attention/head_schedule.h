// Head schedules: how many attention heads each layer has. Integers only, no tensors.
//
//   HeadSchedule schedule = parse_head_schedule("3x2,6x2,8x2,12x6");        // heads x layers: 12 layers
//   check_head_schedule(schedule, /*d_model=*/768, /*base=*/12, /*allow_any=*/false);
//   for (const auto& warning : head_schedule_warnings(schedule, 12, head_dims)) ...
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace prism {

/// Number of heads of each layer, first layer first. The last layer's count is the base.
using HeadSchedule = std::vector<int64_t>;

/// Parses "3x2,6x2,12x8" (heads x layers), a list "3,3,6,6" (heads per layer), or a mixture of both.
/// @throws InputError naming the part that cannot be parsed.
HeadSchedule parse_head_schedule(std::string_view text);

/// The short form: "3x2,6x2,12x8".
std::string format_head_schedule(const HeadSchedule& schedule);

/// @throws InputError unless `heads` divides d_model; the message names the layer and the nearest counts that fit.
void check_head_divides(int64_t heads, size_t layer, int64_t d_model);

/// The rules of a progressive head schedule (h_1..h_L):
///
///   (i) h_l divides d_model;  (ii) h_l >= h_(l-1);  (iii) h_L = h_base.
///
/// @param base       h_base, the head count of the uniform model of the same size; 0: whatever the last layer has.
/// @param allow_any  lifts (ii) and (iii), for ablations.
/// @throws InputError naming the layer, its head count, and the nearest counts that fit.
/// Source: arXiv 2606.27449, section 2.1.
void check_head_schedule(const HeadSchedule& schedule, int64_t d_model, int64_t base, bool allow_any);

/// One sentence for each guideline that the schedule violates: stages of at least 2 layers before the base, at least
/// half of the layers at the base, heads of width 128 or 256 in the first stage. Empty for a uniform schedule.
///
/// @param base       h_base; 0: whatever the last layer has.
/// @param head_dims  head width of each layer.
/// Source: arXiv 2606.27449, sections 2.2 and 2.3.
std::vector<std::string> head_schedule_warnings(const HeadSchedule& schedule, int64_t base,
                                                const std::vector<int64_t>& head_dims);

}  // namespace prism
