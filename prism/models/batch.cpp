#include "prism/models/batch.h"

#include <ATen/Functions.h>

#include <algorithm>

namespace prism {

BatchTensors::BatchTensors(Batch& batch)
    : tokens_BT(torch::from_blob(batch.tokens.data(), {batch.rows, batch.context}, torch::kLong)),
      labels_BT(torch::from_blob(batch.labels.data(), {batch.rows, batch.context}, torch::kLong)) {
  if (!batch.word_openings.empty())
    context.word_opening_B = torch::from_blob(batch.word_openings.data(), {batch.rows}, torch::kLong);
  if (batch.documents.empty()) return;
  context.documents_BT = torch::from_blob(batch.documents.data(), {batch.rows, batch.context}, torch::kInt);
  context.positions_BT = positions_in_documents(context.documents_BT);
}

void BatchTensors::set_prompts(const torch::Tensor& prompts_B) {
  context.prompts_B = prompts_B;
  const auto place_T = at::arange(tokens_BT.size(1), torch::kLong);
  labels_BT = labels_BT.masked_fill(place_T.unsqueeze(0) < prompts_B.unsqueeze(1) - 1, -1);
}

void BatchTensors::predict_second_halves() {
  set_prompts(torch::full({tokens_BT.size(0)}, std::max<int64_t>(1, tokens_BT.size(1) / 2), torch::kInt));
}

torch::Tensor BatchTensors::labels_ahead(int64_t skip) const {
  const int64_t later = skip - 1, count = labels_BT.size(1) - later;
  if (later == 0) return labels_BT;
  auto ahead = at::full_like(labels_BT, -1);
  if (count <= 0) return ahead;
  auto found = labels_BT.narrow(1, later, count);
  if (context.documents_BT.defined())
    found = found.masked_fill(context.documents_BT.narrow(1, 0, count).ne(context.documents_BT.narrow(1, later, count)),
                              -1);
  ahead.narrow(1, 0, count).copy_(found);
  return ahead;
}

ExampleTensors::ExampleTensors(ExampleBatch& batch, int64_t rows) {
  rows = rows == 0 ? batch.rows : std::min(rows, batch.rows);
  tokens_BT = torch::from_blob(batch.tokens.data(), {rows, batch.width}, torch::kLong);
  if (!batch.labels.empty()) labels_B = torch::from_blob(batch.labels.data(), {rows}, torch::kLong);
  context.lengths_B = torch::from_blob(batch.lengths.data(), {rows}, torch::kInt);
}

}  // namespace prism
