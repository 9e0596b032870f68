// A search for a head schedule by successive halving: all candidates train for a little, the best of them for longer.
//
//   {"recipe": "base.json", "seeds": [1], "search": {"first_heads": [1, 2, 3], "candidates": 27, "rungs": 3}}
//
//   const ScheduleSearch search = load_schedule_search("search.json", {});
//   Sweep sweep = rung_of(search, 0, search.candidates);                     // uniform first, then the candidates
//   auto best = best_schedules(search, candidates, losses);                  // those of the next rung
#pragma once

#include "prism/training/sweep.h"

namespace prism {

struct ScheduleSearch {
  SearchOptions options;
  Recipe base;  ///< its schedule is uniform
  std::vector<int64_t> seeds;
  bool keep_checkpoints = true;
  int64_t proposed = 0;                  ///< schedules of the whole space
  std::vector<HeadSchedule> candidates;  ///< of the first rung: all of them, or a sample
};

/// Reads a sweep's file that has "search" where others have arms.
///
/// The space is that of attention/schedule_search.h; width, layers and base come from the recipe's model, whose own
/// schedule counts only for its length and for the heads of its last layer.
/// @throws InputError as load_sweep() and propose_schedules(): for a space without a candidate, for instance.
ScheduleSearch load_schedule_search(const std::filesystem::path& file, const std::vector<Override>& overrides);

/// Tokens of each run of a rung: train.tokens / factor^(rungs - 1 - rung).
int64_t rung_tokens(const ScheduleSearch& search, int64_t rung);

/// The uniform schedule, which is the baseline, and `schedules`, trained for a rung's tokens from their beginning, so
/// that each run's learning rate falls to its end.
Sweep rung_of(const ScheduleSearch& search, int64_t rung, const std::vector<HeadSchedule>& schedules);

/// The schedules with the lowest losses (or the best of another figure), one of every `factor`, at least one; in their
/// order before.
/// @param losses  one for each of them; NaN, of a run that failed, is never kept. None: all are NaN.
/// Source: successive halving, arXiv 1502.07943. Differs: what is left over when `factor` does not divide them keeps
/// one more.
std::vector<HeadSchedule> best_schedules(const ScheduleSearch& search, const std::vector<HeadSchedule>& schedules,
                                         const std::vector<double>& losses, const Figure& figure);

}  // namespace prism
