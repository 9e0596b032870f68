// Products of few rows with a matrix that is read in place.
#pragma once

#include "prism/kernels/rows/row_loop.h"
#include "prism/kernels/rows/rows.h"

namespace prism::rows {

/// Multiplies XRows rows of x, from row `r` on, by kLanes / XRows rows of w, from row `n` on. The results fill one
/// vector. Past the ends the last rows are repeated, so that a result does not depend on the number of rows.
template <class Op, int XRows>
PRISM_FORCE_INLINE void project_tile(const Projection& p, int64_t r, int64_t n, int64_t last) {
  constexpr int kWRows = Op::kLanes / XRows;
  const float *x[XRows], *w[kWRows];
  for (int i = 0; i < XRows; ++i) x[i] = p.x + (r + i < p.x_rows ? r + i : p.x_rows - 1) * p.x_stride;
  for (int j = 0; j < kWRows; ++j) w[j] = p.w + (n + j < last ? n + j : last - 1) * p.w_stride;
  typename Op::Vector sums[Op::kLanes];
  for (auto& sum : sums) sum = Op::zero();
  for_each_vector<Op>(p.inner, [&](auto part) PRISM_INLINE_LAMBDA {
    typename Op::Vector rows[XRows];
#pragma GCC unroll 4
    for (int i = 0; i < XRows; ++i) rows[i] = part.load(x[i]);
#pragma GCC unroll 16
    for (int j = 0; j < kWRows; ++j) {
      const auto weights = part.load(w[j]);
#pragma GCC unroll 4
      for (int i = 0; i < XRows; ++i) sums[i * kWRows + j] = Op::fma(rows[i], weights, sums[i * kWRows + j]);
    }
  });
  float results[Op::kLanes];
  Op::store(results, Op::sum_rows(sums));
  for (int i = 0; i < XRows && r + i < p.x_rows; ++i)
    for (int j = 0; j < kWRows && n + j < last; ++j) {
      const float value = results[i * kWRows + j] + (p.bias == nullptr ? 0 : p.bias[n + j]);
      p.y[(r + i) * p.y_stride + n + j] = p.relu && value < 0 ? 0 : value;
    }
}

template <class Op>
void project_rows(const Projection& p, int64_t first, int64_t last) {
  constexpr int kXRows = 4;  // each vector that is loaded takes part in two to four products
  if (p.x_rows == 1) {
    for (int64_t n = first; n < last; n += Op::kLanes) project_tile<Op, 1>(p, 0, n, last);
    return;
  }
  for (int64_t n = first; n < last; n += Op::kLanes / kXRows)
    for (int64_t r = 0; r < p.x_rows; r += kXRows) project_tile<Op, kXRows>(p, r, n, last);
}

}  // namespace prism::rows
