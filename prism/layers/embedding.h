// A table of learned vectors, for tokens or positions.
#pragma once

#include "prism/layers/weight_list.h"

namespace prism {

class Embedding {
 public:
  /// An empty embedding without a table.
  Embedding() = default;
  Embedding(int64_t rows, int64_t width) : weight({rows, width}) {}

  explicit operator bool() const { return static_cast<bool>(weight); }

  /// ids [...] int64 -> [..., width] in the weight's dtype, float32 if it is frozen.
  torch::Tensor operator()(const torch::Tensor& ids) const;

  void visit(WeightVisitor& v) const { v.weight("weight", weight, {.role = WeightRole::table}); }

  Weight weight;  ///< [rows, width]
};

/// The encoding of positions by sines and cosines: row t has sin(t / 10000^(2 i / width)) in column 2 i and the cosine
/// of the same angle in column 2 i + 1. Source: arXiv 1706.03762, section 3.5.
/// @param width  even. @return  float64 [positions, width].
torch::Tensor sinusoidal_positions(int64_t positions, int64_t width);

}  // namespace prism
