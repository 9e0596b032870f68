#include "prism/sparse/methods/last_queries.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <limits>

namespace prism {

LastQueries attend_with_last(const HeadInput& head, int64_t most) {
  const int64_t count = std::min(most, head.queries), keys = head.keys;
  auto scores = at::mm(head.q_TD.narrow(0, head.queries - count, count), head.k_SD.t()).mul_(head.scale);
  const auto position_T = at::arange(keys - count, keys), key_S = at::arange(keys);
  const auto distance_TS = position_T.unsqueeze(1) - key_S.unsqueeze(0);
  scores.masked_fill_(distance_TS < 0, -std::numeric_limits<float>::infinity());
  const auto weights = scores.softmax(-1);
  // Weights of unseen keys are 0, so it does not matter at which distance they are added.
  auto slash_S = at::zeros({keys}, weights.options());
  slash_S.index_add_(0, distance_TS.clamp_min(0).flatten(), weights.flatten());
  return {weights.sum(0), slash_S, count};
}

void keep_distances(const HeadInput& head, const DistanceRange& distances, torch::Tensor kept_MN) {
  for (int64_t m = 0; m < head.rows(); ++m) {
    const int64_t first = head.first_position(m), last = head.end_position(m) - 1;
    const int64_t highest = last - distances.first, lowest = std::max<int64_t>(0, first - distances.end + 1);
    if (highest < 0) continue;
    kept_MN[m].slice(0, lowest / head.key_block, highest / head.key_block + 1).fill_(true);
  }
}

}  // namespace prism
