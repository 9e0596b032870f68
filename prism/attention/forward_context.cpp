#include "prism/attention/forward_context.h"

#include <ATen/Functions.h>

namespace prism {

ForwardContext on_device(const ForwardContext& context, const torch::Device& device) {
  ForwardContext moved = context;
  for (auto* tensor :
       {&moved.positions_BT, &moved.word_opening_B, &moved.documents_BT, &moved.lengths_B, &moved.prompts_B})
    if (tensor->defined()) *tensor = tensor->to(device);
  return moved;
}

torch::Tensor positions_in_documents(const torch::Tensor& documents_BT) {
  // The position is the distance from the last document start at or before t.
  const auto index_T = at::arange(documents_BT.size(1), torch::kLong);
  const auto starts_BT = at::ones_like(documents_BT, torch::kBool);
  starts_BT.narrow(1, 1, documents_BT.size(1) - 1)
      .copy_(
          documents_BT.narrow(1, 1, documents_BT.size(1) - 1).ne(documents_BT.narrow(1, 0, documents_BT.size(1) - 1)));
  const auto start_BT = std::get<0>(at::cummax(at::where(starts_BT, index_T, 0), 1));
  return index_T - start_BT;
}

}  // namespace prism
