#include "prism/models/classification_head.h"

#include <ATen/Functions.h>

#include "prism/core/error.h"
#include "prism/layers/pooling.h"

namespace prism {

Pooling find_pooling(const std::string& name) {
  PRISM_CHECK(name == "mean" || name == "first", "model",
              "model.pooling: expected mean or first; found \"{}\"; choose one of them.", name);
  return name == "mean" ? Pooling::mean : Pooling::first;
}

torch::Tensor ClassificationHead::pooled(const torch::Tensor& hidden_BTD, const torch::Tensor& lengths_B) const {
  const auto type = projection.weight.tensor().scalar_type();
  if (pooling_ == Pooling::first) {
    const auto first_BD = hidden_BTD.select(1, 0).to(type);
    return lengths_B.defined() ? first_BD.masked_fill((lengths_B.to(first_BD.device()) == 0).unsqueeze(1), 0)
                               : first_BD;
  }
  return mean_of_rows(hidden_BTD, lengths_B, type);
}

torch::Tensor ClassificationHead::logits(const torch::Tensor& hidden_BTD, const torch::Tensor& lengths_B) const {
  return projection(pooled(hidden_BTD, lengths_B));
}

torch::Tensor ClassificationHead::loss(const torch::Tensor& logits_BC, const torch::Tensor& labels_B) {
  return at::cross_entropy_loss(logits_BC, labels_B.to(logits_BC.device()));
}

}  // namespace prism
