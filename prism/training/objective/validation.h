// The loss over a validation split.
#pragma once

#include "prism/data/loader.h"
#include "prism/models/decoder.h"

namespace prism {

struct ValidationLoss {
  double loss = 0;                                     ///< nats per token
  int64_t tokens = 0;                                  ///< predicted ones
  std::optional<std::vector<double>> head_share = {};  ///< mean of each layer; std::nullopt without head budgets
};

/// Mean loss over the remaining windows of `windows`; each token is predicted once.
/// @param second_halves  predict only the second half of each window; head budgets read the first.
/// @param windows  unshuffled; with the document mask that the model was trained with.
/// @param tokens   stop after reading this many tokens, rounded up to whole batches; 0: all.
/// @return         std::nullopt if a stop signal arrived (core/stop.h).
std::optional<ValidationLoss> validation_loss(Decoder decoder, WindowLoader windows, int64_t tokens,
                                              bool second_halves = false);

}  // namespace prism
