// A block whose activations are not kept for the backward pass but computed again there.
#pragma once

#include <memory>

#include "prism/models/block.h"

namespace prism {

/// block->forward(residual, context, type), of whose activations only `residual` is kept: the backward pass runs the
/// block once more. Gradients are the same to the last bit, since nothing in a block is random. What the block adds to
/// the loss is added to context.auxiliary once, and its gradients flow.
///
/// @param context  without cache and probe, which must not see the same tokens twice.
/// Source: arXiv 1604.06174, with a layer as the segment.
Residual recomputed(const std::shared_ptr<Block>& block, const Residual& residual, const ForwardContext& context,
                    torch::ScalarType type);

}  // namespace prism
