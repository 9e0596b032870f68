// Backward pass of y = max(0, x), computed from y.
#pragma once

#include "prism/kernels/rows/row_loop.h"
#include "prism/kernels/rows/rows.h"

namespace prism::rows {

template <class Op, class Storage>
void relu_gradient_rows(const ReluGradient& g, int64_t first, int64_t last) {
  const Storage* y = static_cast<const Storage*>(g.y) + first * g.width;
  const Storage* d_y = static_cast<const Storage*>(g.d_y) + first * g.width;
  Storage* d_x = static_cast<Storage*>(g.d_x) + first * g.width;
  for_each_vector<Op>((last - first) * g.width,
                      [&](auto part) { part.store(d_x, Op::where_positive(part.load(y), part.load(d_y))); });
}

}  // namespace prism::rows
