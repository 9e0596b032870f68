#include "prism/training/objective/validation.h"

#include "prism/core/stop.h"
#include "prism/models/batch.h"

namespace prism {

std::optional<ValidationLoss> validation_loss(Decoder decoder, WindowLoader windows, int64_t tokens) {
  torch::NoGradGuard no_gradients;
  ValidationLoss result;
  double sum = 0;
  while (windows.position() < windows.windows_per_epoch() && (tokens == 0 || result.tokens < tokens)) {
    if (stop_signal() != 0) return std::nullopt;
    Batch batch = windows.next();
    const BatchTensors tensors(batch);
    sum += decoder->head.token_losses(decoder(tensors.tokens_BT, tensors.context), tensors.labels_BT)
               .sum(torch::kDouble)
               .item<double>();
    result.tokens += batch.rows * batch.context;
  }
  result.loss = sum / static_cast<double>(result.tokens);
  return result;
}

}  // namespace prism
