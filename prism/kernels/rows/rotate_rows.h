// Rotary position embedding of fused queries and keys.
#pragma once

#include <cstring>

#include "prism/kernels/rows/row_loop.h"
#include "prism/kernels/rows/rows.h"

namespace prism::rows {

template <class Op, class Storage>
void rotate_rows(const Rotation& r, int64_t first, int64_t last) {
  const int64_t half = r.head_dim / 2, width = r.heads * r.head_dim, turned = r.rotated * r.head_dim;
  const auto direction = Op::set(r.direction), minus = Op::set(-1.0f);
  for (int64_t row = first; row < last; ++row) {
    const float* cos = r.cos + row % r.positions * half;
    const float* sin = r.sin + row % r.positions * half;
    const Storage* in = static_cast<const Storage*>(r.in) + row * width;
    Storage* out = static_cast<Storage*>(r.out) + row * width;
    for (int64_t at = 0; at < turned; at += r.head_dim) {
      for_each_vector<Op>(half, [&](auto part) {
        const auto a = part.load(in + at), b = part.load(in + at + half);
        const auto c = part.load(cos), s = Op::mul(part.load(sin), direction);
        part.store(out + at, Op::fma(a, c, Op::mul(Op::mul(b, s), minus)));
        part.store(out + at + half, Op::fma(b, c, Op::mul(a, s)));
      });
    }
    if (in != out) std::memcpy(out + turned, in + turned, static_cast<size_t>(width - turned) * sizeof(Storage));
  }
}

}  // namespace prism::rows
