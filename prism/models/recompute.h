// Activation checkpointing: a block's activations are recomputed in the backward pass instead of kept.
#pragma once

#include <memory>

#include "prism/models/block.h"

namespace prism {

/// Calls block->forward(residual, context, type) and keeps only `residual`; the backward pass runs the block again.
/// Gradients are bitwise identical, because nothing in a block is random. The block's auxiliary loss is added to
/// context.auxiliary once and is differentiable.
///
/// @param context  without cache and probe, which must not see the same tokens twice.
/// Source: arXiv 1604.06174, with one layer per segment.
Residual recomputed(const std::shared_ptr<Block>& block, const Residual& residual, const ForwardContext& context,
                    torch::ScalarType type);

}  // namespace prism
