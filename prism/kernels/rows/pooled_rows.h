// Kernels for selectors of key blocks: sums over tokens, and the softmax of scores.
#pragma once

#include "prism/kernels/rows/row_loop.h"
#include "prism/kernels/rows/rows.h"
#include "prism/kernels/simd/exp2.h"
#include "prism/kernels/simd/range.h"

namespace prism::rows {

template <class Op, class Storage>
void add_rows(const ColumnSums& c, int64_t first, int64_t last) {
  // The sums of kColumns columns stay in registers; each row is read once and added in order.
  constexpr int kVectors = 8;
  constexpr int64_t kColumns = kVectors * Op::kLanes, kAhead = 8;
  const Storage* x = static_cast<const Storage*>(c.x);
  int64_t at = 0;
  for (; at + kColumns <= c.width; at += kColumns) {
    typename Op::Vector sums[kVectors];
    for (int i = 0; i < kVectors; ++i) sums[i] = Op::load(c.sums + at + i * Op::kLanes);
    for (int64_t row = first; row < last; ++row) {
      const Storage* values = x + row * c.stride + at;
      // Rows are far apart, where hardware prefetchers find no pattern.
      for (int64_t line = 0; line < kColumns; line += simd::kLineBytes / static_cast<int64_t>(sizeof(Storage)))
        __builtin_prefetch(values + kAhead * c.stride + line);
      for (int i = 0; i < kVectors; ++i) sums[i] = Op::add(sums[i], Op::load(values + i * Op::kLanes));
    }
    for (int i = 0; i < kVectors; ++i) Op::store(c.sums + at + i * Op::kLanes, sums[i]);
  }
  for_each_vector<Op>(c.width - at, [&](auto part) {
    auto sum = part.load(c.sums + at);
    for (int64_t row = first; row < last; ++row) sum = Op::add(sum, part.load(x + row * c.stride + at));
    part.store(c.sums + at, sum);
  });
}

template <class Op>
void softmax_rows(const Softmax& s, int64_t first, int64_t last) {
  for (int64_t row = first; row < last; ++row) {
    float* x = s.x + row * s.width;
    float largest = simd::kNoScore;
    for (int64_t i = 0; i < s.width; ++i) largest = largest < x[i] ? x[i] : largest;
    const auto shift = Op::set(-largest), factor = Op::set(s.scale * simd::kLog2E);
    auto sums = Op::zero();
    const auto soften = [&](auto part, float* values) PRISM_INLINE_LAMBDA {
      const auto value = simd::exp2<Op>(Op::mul(Op::add(part.load(values), shift), factor));
      part.store(values, value);
      return value;
    };
    const int64_t whole = s.width / Op::kLanes * Op::kLanes;
    for_each_vector<Op>(whole, [&](auto part) PRISM_INLINE_LAMBDA { sums = Op::add(sums, soften(part, x)); });
    float sum = Op::sum(sums);
    // By the same function, so that equal scores have equal shares. A partial vector loads zeros after the last value,
    // whose exponentials must not be added.
    for_each_vector<Op>(s.width - whole, [&](auto part) PRISM_INLINE_LAMBDA { soften(part, x + whole); });
    for (int64_t i = whole; i < s.width; ++i) sum += x[i];
    const auto inverse = Op::set(1 / sum);
    for_each_vector<Op>(s.width, [&](auto part) { part.store(x, Op::mul(part.load(x), inverse)); });
  }
}

}  // namespace prism::rows
