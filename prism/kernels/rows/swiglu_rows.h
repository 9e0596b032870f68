// silu(gate) up, forward and backward, in one pass each.
#pragma once

#include "prism/kernels/rows/row_loop.h"
#include "prism/kernels/rows/rows.h"
#include "prism/kernels/simd/exp2.h"

namespace prism::rows {

/// 1 / (1 + e^-x). The relative error is that of exp2 plus |x| 1.25 2^-24 from rounding its argument. Below -87 the
/// absolute error is 2^-126.
template <class Op>
PRISM_FORCE_INLINE typename Op::Vector sigmoid(typename Op::Vector x) {
  // If an operand is NaN, max returns its second operand, so a NaN stays.
  const auto exponent = Op::max(Op::set(-126.0f), Op::mul(x, Op::set(simd::kLog2E)));
  const auto one = Op::set(1.0f);
  return Op::div(one, Op::add(one, simd::exp2<Op>(Op::mul(exponent, Op::set(-1.0f)))));
}

template <class Op, class Storage>
void swiglu_rows(const Swiglu& g, int64_t first, int64_t last) {
  for (int64_t row = first; row < last; ++row) {
    const Storage* gate = static_cast<const Storage*>(g.x) + row * 2 * g.width;
    const Storage* up = gate + g.width;
    Storage* y = static_cast<Storage*>(g.y) + row * g.width;
    for_each_vector<Op>(g.width, [&](auto part) {
      const auto value = part.load(gate);
      part.store(y, Op::mul(Op::mul(value, sigmoid<Op>(value)), part.load(up)));
    });
  }
}

template <class Op, class Storage>
void swiglu_gradient_rows(const SwigluGradient& g, int64_t first, int64_t last) {
  for (int64_t row = first; row < last; ++row) {
    const Storage* gate = static_cast<const Storage*>(g.x) + row * 2 * g.width;
    const Storage* up = gate + g.width;
    const Storage* d_y = static_cast<const Storage*>(g.d_y) + row * g.width;
    Storage* d_gate = static_cast<Storage*>(g.d_x) + row * 2 * g.width;
    Storage* d_up = d_gate + g.width;
    for_each_vector<Op>(g.width, [&](auto part) {
      const auto value = part.load(gate), gradient = part.load(d_y), s = sigmoid<Op>(value);
      const auto silu = Op::mul(value, s);
      // gate s (1 - s) = silu - silu s
      const auto slope = Op::add(s, Op::fma(Op::mul(silu, Op::set(-1.0f)), s, silu));
      part.store(d_gate, Op::mul(Op::mul(gradient, part.load(up)), slope));
      part.store(d_up, Op::mul(gradient, silu));
    });
  }
}

}  // namespace prism::rows
