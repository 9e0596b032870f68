// Gated linear units: a projection, scaled by a gate that is a function of others.
//
//   y = glu(GluKind::swiglu, torch::matmul(x, w_gate_up.t()));       // [gate | up], one product
//   y = glu(GluKind::swiglu, torch::matmul(x, w_gate.t()), torch::matmul(x, w_up.t()));
#pragma once

#include <torch/types.h>

#include <cstdint>

namespace prism {

enum class GluKind {
  swiglu,  ///< silu(gate); arXiv 2002.05202
  g2lu     ///< silu(gate silu(inner)), a gate within the gate, as in the model card of Prisma
};

/// The number of projections that a gate is computed from: 1, or 2 for g2lu.
int64_t gate_parts(GluKind kind);

/// y = silu(gate) up, or silu(gate silu(inner)) up.
///
/// Keeps only its arguments for the backward pass, which recomputes the gate. Differentiable in both.
///
/// @param gates  [..., F] gate, or [..., 2 F] gate | inner; followed by up along the last axis if `up` is undefined.
/// @param up     [..., F], gates' dtype; undefined: the last F features of `gates`.
/// @return       [..., F], gates' dtype.
/// @throws InputError for shapes that do not fit.
torch::Tensor glu(GluKind kind, const torch::Tensor& gates, const torch::Tensor& up = {});

/// The same with elementary tensor operations; the reference for tests.
torch::Tensor glu_plain(GluKind kind, const torch::Tensor& gates, const torch::Tensor& up = {});

}  // namespace prism
