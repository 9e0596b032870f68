// The loss over a validation split.
#pragma once

#include "prism/data/loader.h"
#include "prism/models/decoder.h"

namespace prism {

struct ValidationLoss {
  double loss = 0;  ///< nats per token
  int64_t tokens = 0;
};

/// Mean loss over whole windows of the model's context, in order, each token predicted once; without a document mask,
/// so that models trained with and without one are comparable.
/// @param rows    windows of a forward pass.
/// @param tokens  stop after so many, rounded up to whole batches; 0: all.
ValidationLoss validation_loss(Decoder decoder, const TokenDataset& data, int64_t rows, int64_t tokens);

}  // namespace prism
