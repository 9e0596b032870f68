// Which group ends with the best validation (the lowest loss, or best by the runs' metric), and whether its seeds show
// that it is better than its rival.
//
//   const auto verdict = find_verdict(comparison);
//   if (verdict && verdict->is_shown()) fmt::print("{}\n", comparison.groups[verdict->best].label);
#pragma once

#include <optional>
#include <vector>

#include "prism/report/compare/compare.h"

namespace prism {

struct FinalLoss {
  size_t group = 0;
  Statistic loss;
};

/// The comparable final validation losses: those of the groups that were evaluated after the longest training.
struct FinalLosses {
  int64_t trained = 0;
  std::vector<FinalLoss> groups;  ///< in the comparison's order; empty if no group was evaluated
};

FinalLosses final_losses(const Comparison& comparison);

struct Verdict {
  size_t best = 0;       ///< among the groups that take part
  size_t rival = 0;      ///< the baseline; if that is the best, the runner-up
  int64_t trained = 0;   ///< tokens or examples after which the losses are compared
  Statistic loss;        ///< of the best
  bool of_all = true;    ///< false if a group was left out for a shorter training
  int64_t of_seeds = 0;  ///< if not 0, groups that share fewer seeds than this with the baseline were left out
  std::optional<PairedDifference> difference;  ///< best minus rival; std::nullopt if the rival was not evaluated there
  bool less_is_better = true;

  /// Returns true if the 95% interval of the paired difference lies on the better side of zero.
  bool is_shown() const {
    if (!difference || !difference->has_interval()) return false;
    return less_is_better ? difference->interval.high < 0 : difference->interval.low > 0;
  }
};

/// Ranks groups by their difference to the baseline on the shared seeds, else by means. Groups that share fewer seeds
/// than others do not take part, since one easy seed could decide the ranking. std::nullopt unless at least two groups
/// can be compared.
std::optional<Verdict> find_verdict(const Comparison& comparison);

}  // namespace prism
