// Attention of a prompt's last queries, summed by key and by distance: the estimate of the vertical-slash methods.
#pragma once

#include <torch/types.h>

#include "prism/sparse/head_by_head.h"

namespace prism {

struct LastQueries {
  torch::Tensor vertical_S;  ///< attention to key s, summed over the queries
  torch::Tensor slash_S;     ///< attention at distance s, summed over the queries
  int64_t count = 0;         ///< number of queries
};

/// softmax(scale q k^T) of the head's last `most` queries (all if it has fewer), summed both ways.
LastQueries attend_with_last(const HeadInput& head, int64_t most);

/// Distances [first, end) from a query back to a key.
struct DistanceRange {
  int64_t first = 0, end = 0;
};

/// Sets kept_MN, bool [rows, blocks], where some query of a row sees some key of a block at one of these distances.
void keep_distances(const HeadInput& head, const DistanceRange& distances, torch::Tensor kept_MN);

}  // namespace prism
