// Which group ends with the best validation (the lowest loss, or by the runs' figure), and whether its seeds show that
// it is better than its rival.
//
//   const auto verdict = find_verdict(comparison);
//   if (verdict && verdict->is_shown()) fmt::print("{}\n", comparison.groups[verdict->best].label);
#pragma once

#include <optional>
#include <vector>

#include "prism/report/compare.h"

namespace prism {

struct FinalLoss {
  size_t group = 0;
  Statistic loss;
};

/// The validation losses that can be compared: of the groups that were evaluated after the most tokens.
struct FinalLosses {
  int64_t tokens = 0;
  std::vector<FinalLoss> groups;  ///< in the comparison's order; empty: no group was evaluated
};

FinalLosses final_losses(const Comparison& comparison);

struct Verdict {
  size_t best = 0;       ///< of those that take part
  size_t rival = 0;      ///< the baseline; where that is the best, the runner-up
  int64_t tokens = 0;    ///< after which the losses are compared
  Statistic loss;        ///< of the best
  bool of_all = true;    ///< no group was left out for fewer tokens
  int64_t of_seeds = 0;  ///< groups that share fewer seeds with the baseline were left out; 0: none
  std::optional<PairedDifference> difference;  ///< best minus rival; absent: the rival was not evaluated there
  bool less_is_better = true;

  /// Whether the 95% interval of the paired difference lies on the better side of zero.
  bool is_shown() const {
    if (!difference || !difference->has_interval()) return false;
    return less_is_better ? difference->interval.high < 0 : difference->interval.low > 0;
  }
};

/// Groups are ranked by their difference to the baseline on the seeds that they share with it, else by means. Those
/// that share fewer seeds than another do not take part: one easy seed would keep the others from being named. Absent
/// unless two groups at least can be compared.
std::optional<Verdict> find_verdict(const Comparison& comparison);

}  // namespace prism
