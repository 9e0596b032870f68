// The stable rank of the projections of feed-forward parts.
//
//   for (const auto& matrix : measure_stable_ranks(decoder->weights()))
//     fmt::print("layer {} {}: {:.1f}\n", matrix.layer, matrix.part, matrix.stable_rank);
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "prism/layers/weight_list.h"

namespace prism {

struct StableRank {
  int64_t layer = 0;
  std::string part;
  int64_t rows = 0, columns = 0;
  double stable_rank = 0, spectral_norm = 0;
  std::optional<int64_t> owner;
  template <class Visitor>
  void visit(Visitor& v) {
    v("layer", layer, "layer, counted from 0");
    v("part", part, "name of the matrix within its layer");
    v("rows", rows, "output features");
    v("columns", columns, "input features");
    v("stable_rank", stable_rank, "sum of the squared singular values over the largest: 1 to the rank");
    v("spectral_norm", spectral_norm, "largest singular value");
    v("owner", owner, "layer whose matrix this is, if the layer shares it");
  }
};

/// |W|_F^2 / |W|_2^2 and |W|_2, computed in float64 from the eigenvalues of W W^T or W^T W, whichever is smaller. 0 for
/// a matrix of zeros. Source: Rudelson and Vershynin, arXiv math/0503442.
std::pair<double, double> stable_rank(const torch::Tensor& matrix);

/// The matrices of all feed-forward parts, layer by layer. A matrix that several layers use appears in each.
std::vector<StableRank> measure_stable_ranks(const std::vector<WeightEntry>& weights);

}  // namespace prism
