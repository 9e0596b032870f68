#include "prism/training/objective/validation.h"

#include "prism/core/statistics.h"
#include "prism/core/stop.h"
#include "prism/models/batch.h"

namespace prism {

std::optional<ValidationLoss> validation_loss(Decoder decoder, WindowLoader windows, int64_t tokens,
                                              bool second_halves) {
  torch::NoGradGuard no_gradients;
  ValidationLoss result;
  double sum = 0;
  int64_t read = 0, rows = 0;
  std::vector<double> shares;
  while (windows.position() < windows.windows_per_epoch() && (tokens == 0 || read < tokens)) {
    if (stop_signal() != 0) return std::nullopt;
    Batch batch = windows.next();
    BatchTensors tensors(batch);
    if (second_halves) tensors.predict_second_halves();
    result.tokens += tensors.labels_BT.ge(0).sum().item<int64_t>();
    Budgets budgets(decoder->config().budget_tau, {.first_row = rows});
    tensors.context.budgets = &budgets;
    sum += decoder->head.token_losses(decoder(tensors.tokens_BT, tensors.context), tensors.labels_BT)
               .sum(torch::kDouble)
               .item<double>();
    read += batch.rows * batch.context;
    add_scaled(shares, mean_shares(budgets.decisions(), decoder->config().layers.size()),
               static_cast<double>(batch.rows));
    rows += batch.rows;
  }
  result.loss = sum / static_cast<double>(result.tokens);
  if (!shares.empty()) add_scaled(result.head_share.emplace(), shares, 1 / static_cast<double>(rows));
  return result;
}

}  // namespace prism
