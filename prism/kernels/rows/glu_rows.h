// Gated linear units, forward and backward, in one pass each.
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

/// silu(x) = x s and its slope s (1 + x (1 - s)) = s + silu(x) (1 - s), with s = sigmoid(x).
template <class Op>
struct Silu {
  typename Op::Vector value, slope;
};

template <class Op>
PRISM_FORCE_INLINE typename Op::Vector silu(typename Op::Vector x) {
  return Op::mul(x, sigmoid<Op>(x));
}

template <class Op>
PRISM_FORCE_INLINE Silu<Op> silu_and_slope(typename Op::Vector x) {
  const auto s = sigmoid<Op>(x), value = Op::mul(x, s);
  return {value, Op::add(s, Op::fma(Op::mul(value, Op::set(-1.0f)), s, value))};
}

template <class Op, class Storage>
void glu_rows(const Glu& g, int64_t first, int64_t last) {
  const auto row_of = [](const void* x, int64_t values) { return static_cast<const Storage*>(x) + values; };
  for (int64_t row = first; row < last; ++row) {
    const Storage* gate = row_of(g.gate, row * g.gate_stride);
    const Storage* up = row_of(g.up, row * g.up_stride);
    Storage* y = static_cast<Storage*>(g.y) + row * g.width;
    if (g.inner == nullptr) {
      for_each_vector<Op>(g.width,
                          [&](auto part) { part.store(y, Op::mul(silu<Op>(part.load(gate)), part.load(up))); });
    } else {
      const Storage* inner = row_of(g.inner, row * g.gate_stride);
      for_each_vector<Op>(g.width, [&](auto part) {
        const auto z = Op::mul(part.load(gate), silu<Op>(part.load(inner)));
        part.store(y, Op::mul(silu<Op>(z), part.load(up)));
      });
    }
  }
}

template <class Op, class Storage>
void glu_gradient_rows(const GluGradient& g, int64_t first, int64_t last) {
  const auto row_of = [](const void* x, int64_t values) { return static_cast<const Storage*>(x) + values; };
  const auto out_of = [](void* x, int64_t values) { return static_cast<Storage*>(x) + values; };
  for (int64_t row = first; row < last; ++row) {
    const int64_t at_gate = row * g.gate_stride, at_up = row * g.up_stride;
    const Storage *gate = row_of(g.gate, at_gate), *up = row_of(g.up, at_up), *d_y = row_of(g.d_y, row * g.width);
    Storage *d_gate = out_of(g.d_gate, at_gate), *d_up = out_of(g.d_up, at_up);
    if (g.inner == nullptr) {
      for_each_vector<Op>(g.width, [&](auto part) {
        const auto outer = silu_and_slope<Op>(part.load(gate));
        const auto gradient = part.load(d_y);
        part.store(d_gate, Op::mul(Op::mul(gradient, part.load(up)), outer.slope));
        part.store(d_up, Op::mul(gradient, outer.value));
      });
    } else {
      const Storage* inner = row_of(g.inner, at_gate);
      Storage* d_inner = out_of(g.d_inner, at_gate);
      for_each_vector<Op>(g.width, [&](auto part) {
        const auto x = part.load(gate), gradient = part.load(d_y);
        const auto nested = silu_and_slope<Op>(part.load(inner));
        const auto outer = silu_and_slope<Op>(Op::mul(x, nested.value));
        const auto d_z = Op::mul(Op::mul(gradient, part.load(up)), outer.slope);
        part.store(d_gate, Op::mul(d_z, nested.value));
        part.store(d_inner, Op::mul(Op::mul(d_z, x), nested.slope));
        part.store(d_up, Op::mul(gradient, outer.value));
      });
    }
  }
}

}  // namespace prism::rows
