#include "prism/layers/pooling.h"

#include <ATen/Functions.h>

namespace prism {

torch::Tensor mean_of_rows(const torch::Tensor& x_BTD, const torch::Tensor& lengths_B, torch::ScalarType type) {
  if (!lengths_B.defined()) return x_BTD.mean(1, /*keepdim=*/false, type);
  const auto lengths_B1 = lengths_B.to(x_BTD.device()).unsqueeze(1);
  const auto position_T = at::arange(x_BTD.size(1), lengths_B1.options());
  const auto padding_BT1 = (position_T >= lengths_B1).unsqueeze(2);
  // Padding is replaced, since NaN times 0 is NaN.
  const auto sum_BD = x_BTD.masked_fill(padding_BT1, 0).sum(1, /*keepdim=*/false, type);
  return sum_BD / lengths_B1.clamp_min(1).to(type);
}

}  // namespace prism
