#include "prism/report/verdict.h"

#include <algorithm>

namespace prism {
namespace {

bool by_loss(const FinalLoss& a, const FinalLoss& b) {
  return a.loss.mean < b.loss.mean;
}

/// The baseline, or what comes next to it where it is the lowest itself. @pre two groups at least.
size_t rival_of(const FinalLoss& best, std::vector<FinalLoss> groups, size_t baseline) {
  if (best.group != baseline) return baseline;
  std::erase_if(groups, [&](const FinalLoss& other) { return other.group == best.group; });
  return std::min_element(groups.begin(), groups.end(), by_loss)->group;
}

}  // namespace

FinalLosses final_losses(const Comparison& comparison) {
  FinalLosses result;
  for (size_t i = 0; i < comparison.groups.size(); ++i) {
    const auto curve = validation_curve(comparison.groups[i]);
    if (curve.empty() || curve.back().tokens < result.tokens) continue;
    if (curve.back().tokens > result.tokens) result.groups.clear();
    result.tokens = curve.back().tokens;
    result.groups.push_back({i, curve.back().loss});
  }
  return result;
}

std::optional<Verdict> find_verdict(const Comparison& comparison) {
  const auto [tokens, groups] = final_losses(comparison);
  if (groups.size() < 2) return std::nullopt;
  const FinalLoss best = *std::min_element(groups.begin(), groups.end(), by_loss);
  Verdict verdict{best.group, rival_of(best, groups, comparison.baseline), tokens,
                  best.loss,  groups.size() == comparison.groups.size(),   {}};
  const auto gap = final_difference(comparison.groups[verdict.best], comparison.groups[verdict.rival]);
  if (gap && gap->tokens == tokens) verdict.difference = gap->loss;
  return verdict;
}

}  // namespace prism
