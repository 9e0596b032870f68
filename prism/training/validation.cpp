#include "prism/training/validation.h"

#include "prism/training/batch.h"

namespace prism {

ValidationLoss validation_loss(Decoder decoder, const TokenDataset& data, int64_t rows, int64_t tokens) {
  torch::NoGradGuard no_gradients;
  const int64_t context = decoder->config().context;
  WindowLoader loader(data, {.context = context, .rows = rows, .seed = 0, .document_mask = false, .shuffle = false},
                      -1);
  ValidationLoss result;
  double sum = 0;
  while (loader.position() < loader.windows_per_epoch() && (tokens == 0 || result.tokens < tokens)) {
    Batch batch = loader.next();
    const BatchTensors tensors(batch);
    sum += decoder->token_losses(decoder(tensors.tokens_BT, tensors.context), tensors.labels_BT)
               .sum(torch::kDouble)
               .item<double>();
    result.tokens += batch.rows * batch.context;
  }
  result.loss = sum / static_cast<double>(result.tokens);
  return result;
}

}  // namespace prism
