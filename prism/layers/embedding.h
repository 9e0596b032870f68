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

  /// ids [...] int64 -> [..., width] in the weight's dtype.
  torch::Tensor operator()(const torch::Tensor& ids) const;

  void visit(WeightVisitor& v) const { v.weight("weight", weight, {.role = WeightRole::table}); }

  Weight weight;  ///< [rows, width]
};

}  // namespace prism
