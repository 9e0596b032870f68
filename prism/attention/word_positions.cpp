#include "prism/attention/word_positions.h"

#include <ATen/Functions.h>

namespace prism {

torch::Tensor word_positions(const torch::Tensor& tokens_BT, const torch::Tensor& starts_V,
                             const torch::Tensor& opening_B) {
  // A word that is open at the row's first token started `opening` places before it.
  const auto place_T = at::arange(tokens_BT.size(1), tokens_BT.options());
  const auto before_B1 = opening_B.defined() ? -opening_B.unsqueeze(1) : at::zeros({1, 1}, tokens_BT.options());
  const auto starts_BT = starts_V.index({tokens_BT});
  return place_T - std::get<0>(at::cummax(at::where(starts_BT, place_T.unsqueeze(0), before_B1), 1));
}

}  // namespace prism
