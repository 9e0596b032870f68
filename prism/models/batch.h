// A batch of the data loader as tensors.
#pragma once

#include "prism/attention/forward_context.h"
#include "prism/data/loader.h"

namespace prism {

/// Views of a batch's tokens, labels and documents. Valid as long as the batch.
struct BatchTensors {
  explicit BatchTensors(Batch& batch);
  torch::Tensor tokens_BT, labels_BT;  ///< int64
  ForwardContext context;              ///< documents and positions in them, if the batch has documents
};

}  // namespace prism
