// What the last queries of a prompt attend to, by columns and by distances: the estimate of the vertical-slash methods.
#pragma once

#include <torch/types.h>

#include "prism/sparse/head_by_head.h"

namespace prism {

struct LastQueries {
  torch::Tensor vertical_S;  ///< attention that key s gets, summed over the queries
  torch::Tensor slash_S;     ///< attention at distance s, summed over the queries
  int64_t count = 0;         ///< of queries
};

/// softmax(scale q k^T) of the head's last `most` queries, or of as many as there are, summed both ways.
LastQueries attend_with_last(const HeadInput& head, int64_t most);

/// Keys that stand [first, end) in front of their query.
struct DistanceRange {
  int64_t first = 0, end = 0;
};

/// Sets kept_MN, bool [rows, blocks], where some query of a row sees some key of a block at such a distance.
void keep_distances(const HeadInput& head, const DistanceRange& distances, torch::Tensor kept_MN);

}  // namespace prism
