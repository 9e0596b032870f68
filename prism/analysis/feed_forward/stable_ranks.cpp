#include "prism/analysis/feed_forward/stable_ranks.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>

namespace prism {

std::pair<double, double> stable_rank(const torch::Tensor& matrix) {
  const auto wide = matrix.detach().to(torch::kCPU, torch::kDouble);
  const auto gram = wide.size(0) < wide.size(1) ? at::matmul(wide, wide.t()) : at::matmul(wide.t(), wide);
  const double largest = at::linalg_eigvalsh(gram).max().item<double>(), all = gram.trace().item<double>();
  if (largest <= 0) return {0, 0};
  return {all / largest, std::sqrt(largest)};
}

std::vector<StableRank> measure_stable_ranks(const std::vector<WeightEntry>& weights) {
  std::vector<StableRank> found;
  for (const auto& entry : weights) {
    if (!entry.traits.feed_forward || entry.traits.role != WeightRole::matrix) continue;
    for (const auto& tensor : entry.tensors) {
      const auto values = tensor.of(entry.weight.tensor());
      const auto [rank, norm] = stable_rank(values);
      for (const auto& use : entry.uses) {
        auto& matrix = found.emplace_back();
        matrix.layer = static_cast<int64_t>(*use.layer);
        matrix.part = tensor.part;
        matrix.rows = values.size(0);
        matrix.columns = values.size(1);
        matrix.stable_rank = rank;
        matrix.spectral_norm = norm;
        if (use.layer != entry.layer()) matrix.owner = static_cast<int64_t>(*entry.layer());
      }
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const StableRank& a, const StableRank& b) { return a.layer < b.layer; });
  return found;
}

}  // namespace prism
