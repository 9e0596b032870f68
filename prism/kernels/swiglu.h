// The gated activation of SwiGLU on a fused [gate | up] projection.
#pragma once

#include <torch/types.h>

namespace prism {

/// y = silu(gate) * up, where x = [gate | up] along the last axis.
///
/// Keeps only x for the backward pass; silu(gate) is computed again there.
///
/// @param x  [..., 2 F].  @return [..., F], x's dtype. Gradients flow to x.
/// @throws InputError for an odd last axis.
/// Source: arXiv 2002.05202.
torch::Tensor swiglu(const torch::Tensor& x);

/// The same from elementary tensor operations; the truth for tests.
torch::Tensor swiglu_plain(const torch::Tensor& x);

}  // namespace prism
