#include "prism/models/classification_head.h"

#include <ATen/Functions.h>

#include "prism/core/error.h"

namespace prism {

Pooling find_pooling(const std::string& name) {
  PRISM_CHECK(name == "mean" || name == "first", "model",
              "model.pooling: expected mean or first; found \"{}\"; choose one of them.", name);
  return name == "mean" ? Pooling::mean : Pooling::first;
}

torch::Tensor ClassificationHead::pooled(const torch::Tensor& hidden_BTD, const torch::Tensor& lengths_B) const {
  const auto type = weight.tensor().scalar_type();
  if (pooling_ == Pooling::first) return hidden_BTD.select(1, 0).to(type);
  if (!lengths_B.defined()) return hidden_BTD.mean(1, /*keepdim=*/false, type);
  const auto lengths_B1 = lengths_B.to(hidden_BTD.device()).unsqueeze(1);
  const auto position_T = at::arange(hidden_BTD.size(1), lengths_B1.options());
  // Padding may be anything, even NaN, so it is replaced, not multiplied by 0.
  const auto padding_BT1 = (position_T >= lengths_B1).unsqueeze(2);
  const auto sum_BD = hidden_BTD.masked_fill(padding_BT1, 0).sum(1, /*keepdim=*/false, type);
  return sum_BD / lengths_B1.clamp_min(1).to(type);
}

torch::Tensor ClassificationHead::logits(const torch::Tensor& hidden_BTD, const torch::Tensor& lengths_B) const {
  return weight.product(pooled(hidden_BTD, lengths_B), bias);
}

torch::Tensor ClassificationHead::loss(const torch::Tensor& logits_BC, const torch::Tensor& labels_B) {
  return at::cross_entropy_loss(logits_BC, labels_B.to(logits_BC.device()));
}

void ClassificationHead::visit(WeightVisitor& v) const {
  v.weight("weight", weight, {.role = WeightRole::matrix, .fan_in = weight.shape()[1]});
  v.weight("bias", bias, {.role = WeightRole::bias, .fan_in = weight.shape()[1]});
}

}  // namespace prism
