// The SwiGLU activation on a fused [gate | up] projection.
#pragma once

#include <torch/types.h>

namespace prism {

/// y = silu(gate) * up, where x = [gate | up] along the last axis.
///
/// Keeps only x for the backward pass, which recomputes silu(gate). Differentiable in x.
///
/// @param x  [..., 2 F].
/// @return   [..., F], x's dtype.
/// @throws InputError if the last axis has odd size.
/// Source: arXiv 2002.05202.
torch::Tensor swiglu(const torch::Tensor& x);

/// The same with elementary tensor operations; the reference for tests.
torch::Tensor swiglu_plain(const torch::Tensor& x);

}  // namespace prism
