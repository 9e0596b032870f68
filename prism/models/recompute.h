// A block whose activations are not kept for the backward pass but computed again there.
#pragma once

#include "prism/models/block.h"

namespace prism {

/// block(residual, context, type), of whose activations only `residual` is kept: the backward pass runs the block once
/// more. Gradients are the same to the last bit, since nothing in a block is random.
///
/// @param context  without cache and probe, which must not see the same tokens twice.
/// Source: arXiv 1604.06174, with a layer as the segment.
Residual recomputed(Block block, const Residual& residual, const ForwardContext& context, torch::ScalarType type);

}  // namespace prism
