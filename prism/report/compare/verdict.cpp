#include "prism/report/compare/verdict.h"

#include <algorithm>
#include <limits>

namespace prism {
namespace {

/// A group that takes part, with how much worse than the baseline it is on their shared seeds.
struct Candidate {
  FinalLoss final;
  double worse = 0;
  size_t pairs = 0;
};

bool is_better(const Candidate& a, const Candidate& b) {
  return a.worse < b.worse;
}

/// If the baseline was not evaluated after as many tokens, means are compared.
std::vector<Candidate> candidates_of(const Comparison& comparison, const FinalLosses& finals) {
  const auto is_baseline = [&](const FinalLoss& loss) { return loss.group == comparison.baseline; };
  const bool has_baseline = std::any_of(finals.groups.begin(), finals.groups.end(), is_baseline);
  std::vector<Candidate> candidates;
  for (const auto& final : finals.groups) {
    const auto gap = has_baseline && !is_baseline(final)
                         ? final_difference(comparison.groups[final.group], comparison.groups[comparison.baseline])
                         : std::nullopt;
    const double sign = comparison.metric.less_is_better ? 1 : -1;
    const double worse = !has_baseline        ? sign * final.loss.mean
                         : is_baseline(final) ? 0
                         : gap                ? sign * gap->loss.difference.mean
                                              : std::numeric_limits<double>::infinity();
    candidates.push_back({final, worse, gap ? gap->loss.seeds.size() : 0});
  }
  return candidates;
}

}  // namespace

FinalLosses final_losses(const Comparison& comparison) {
  FinalLosses result;
  for (size_t i = 0; i < comparison.groups.size(); ++i) {
    const auto curve = validation_curve(comparison.groups[i]);
    if (curve.empty() || curve.back().trained < result.trained) continue;
    if (curve.back().trained > result.trained) result.groups.clear();
    result.trained = curve.back().trained;
    result.groups.push_back({i, curve.back().loss});
  }
  return result;
}

std::optional<Verdict> find_verdict(const Comparison& comparison) {
  const auto finals = final_losses(comparison);
  if (finals.groups.size() < 2) return std::nullopt;
  auto candidates = candidates_of(comparison, finals);
  const auto fewer = [](const Candidate& a, const Candidate& b) { return a.pairs < b.pairs; };
  const size_t most = std::max_element(candidates.begin(), candidates.end(), fewer)->pairs;
  const auto left_out = std::erase_if(candidates, [&](const Candidate& candidate) {
    return candidate.final.group != comparison.baseline && candidate.pairs < most;
  });
  std::stable_sort(candidates.begin(), candidates.end(), is_better);
  const FinalLoss& best = candidates.front().final;
  Verdict verdict;
  verdict.best = best.group;
  verdict.rival = best.group == comparison.baseline ? candidates[1].final.group : comparison.baseline;
  verdict.trained = finals.trained;
  verdict.less_is_better = comparison.metric.less_is_better;
  verdict.loss = best.loss;
  verdict.of_all = finals.groups.size() == comparison.groups.size();
  verdict.of_seeds = left_out > 0 ? static_cast<int64_t>(most) : 0;
  const auto gap = final_difference(comparison.groups[verdict.best], comparison.groups[verdict.rival]);
  if (gap && gap->trained == finals.trained) verdict.difference = gap->loss;
  return verdict;
}

}  // namespace prism
