// Candidate head schedules for a model: all that satisfy the rules, over a grid of heads, stages and stage lengths.
//
//   ScheduleSpace space{.d_model = 768, .layers = 12, .base_heads = 12};
//   for (const auto& schedule : propose_schedules(space)) ...               // 3x2,6x2,8x2,12x6 is one of them
#pragma once

#include <cstdint>
#include <vector>

#include "prism/attention/head_schedule.h"

namespace prism {

struct ScheduleSpace {
  int64_t d_model = 0, layers = 0, base_heads = 0;  ///< of the model; not fields, since the model's config has them
  std::vector<int64_t> first_heads = {};
  int64_t least_stages = 2, most_stages = 4, least_stage_layers = 2, least_base_layers = 0, head_dim_step = 8;
  template <class Visitor>
  void visit(Visitor& v) {
    v("first_heads", first_heads,
      "head counts allowed in the first layer; empty: all below base_heads that head_dim_step allows");
    v("least_stages", least_stages,
      "minimum number of stages, counting the last; a stage is a group of consecutive layers with the same number of "
      "heads, and the last stage has base_heads");
    v("most_stages", most_stages, "maximum number of stages, counting the last");
    v("least_stage_layers", least_stage_layers, "minimum number of layers in each stage but the last");
    v("least_base_layers", least_base_layers, "minimum number of layers in the last stage; 0: half of all");
    v("head_dim_step", head_dim_step, "head widths are multiples of this; prism's kernels support multiples of 8");
  }
};

/// All schedules of the space. Their head counts divide d_model and rise from stage to stage up to base_heads. They are
/// ordered by the heads of the first stage, then of the next, then by stage lengths. The uniform schedule is not
/// included.
///
/// The defaults follow the paper's guidelines: stages of at least 2 layers, half of the layers at the base.
/// @throws InputError for sizes out of range or an empty space; the message says which limits exclude all schedules.
/// Source: arXiv 2606.27449, sections 2.1, 2.2 and appendix B (start, stages and their boundaries as free variables).
std::vector<HeadSchedule> propose_schedules(const ScheduleSpace& space);

}  // namespace prism
