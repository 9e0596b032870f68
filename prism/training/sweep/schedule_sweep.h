// A search for a head schedule by successive halving: all candidates train briefly, the best of them train longer.
//
//   {"recipe": "base.json", "seeds": [1], "search": {"first_heads": [1, 2, 3], "candidates": 27, "rungs": 3}}
//
//   const ScheduleSearch search = load_schedule_search("search.json", {});
//   Sweep sweep = rung_of(search, 0, search.candidates);             // the uniform schedule, then the candidates
//   auto next = best_schedules(search, search.candidates, losses);   // the schedules of the next rung
#pragma once

#include "prism/training/sweep/sweep.h"

namespace prism {

struct ScheduleSearch {
  SearchOptions options;
  Recipe base;  ///< its schedule is uniform
  std::vector<int64_t> seeds;
  bool keep_checkpoints = true;
  int64_t proposed = 0;                  ///< number of schedules in the whole space
  std::vector<HeadSchedule> candidates;  ///< schedules of the first rung: the whole space or a sample
};

/// Reads a sweep file that has "search" instead of arms.
///
/// The search space is defined in attention/schedule_search.h. Width, number of layers and base heads come from the
/// recipe's model; of its own schedule, only the length and the heads of the last layer are used.
/// @throws InputError as load_sweep() and propose_schedules(), for example if the space has no candidate.
ScheduleSearch load_schedule_search(const std::filesystem::path& file, const std::vector<Override>& overrides);

/// Tokens of each run of a rung: train.tokens / factor^(rungs - 1 - rung), rounded up to whole steps.
int64_t rung_tokens(const ScheduleSearch& search, int64_t rung);

/// The sweep of one rung: the uniform schedule as baseline, and `schedules`. Every run starts from scratch and trains
/// for the rung's tokens, so its learning rate decays completely.
Sweep rung_of(const ScheduleSearch& search, int64_t rung, const std::vector<HeadSchedule>& schedules);

/// The best 1/factor of the schedules by their losses (or another metric), in their original order. The number is
/// rounded up; fewer are returned, possibly none, if too many losses are NaN.
/// @param losses  one per schedule; NaN marks a failed run, which is never kept.
/// Source: successive halving, arXiv 1502.07943. Differs: rounds the number of kept schedules up.
std::vector<HeadSchedule> best_schedules(const ScheduleSearch& search, const std::vector<HeadSchedule>& schedules,
                                         const std::vector<double>& losses, const Metric& metric);

}  // namespace prism
