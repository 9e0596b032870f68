#include "prism/models/batch.h"

namespace prism {

BatchTensors::BatchTensors(Batch& batch)
    : tokens_BT(torch::from_blob(batch.tokens.data(), {batch.rows, batch.context}, torch::kLong)),
      labels_BT(torch::from_blob(batch.labels.data(), {batch.rows, batch.context}, torch::kLong)) {
  if (batch.documents.empty()) return;
  context.documents_BT = torch::from_blob(batch.documents.data(), {batch.rows, batch.context}, torch::kInt);
  context.positions_BT = positions_in_documents(context.documents_BT);
}

}  // namespace prism
