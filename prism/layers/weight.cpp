#include "prism/layers/weight.h"

#include <ATen/record_function.h>

#include <functional>
#include <numeric>
#include <utility>

#include "prism/kernels/linear.h"

namespace prism {

Weight::Weight(std::vector<int64_t> shape, std::optional<double> fill) : storage_(std::make_shared<Storage>()) {
  storage_->shape = std::move(shape);
  storage_->fill = fill;
}

int64_t Weight::numel() const {
  return std::accumulate(shape().begin(), shape().end(), int64_t{1}, std::multiplies<>());
}

const torch::Tensor& Weight::tensor() const {
  static const torch::Tensor none;
  if (!storage_) return none;
  auto& [shape, fill, values, copy, version] = *storage_;
  if (!values.defined()) {
    values = torch::empty(shape, torch::kFloat);
    if (fill) values.fill_(*fill);
    values.set_requires_grad(true);
  }
  return values;
}

const torch::Tensor& Weight::cast(torch::ScalarType type) const {
  const auto& values = tensor();
  if (values.scalar_type() == type) return values;
  RECORD_FUNCTION("prism::cast_weight", {});
  auto& [shape, fill, unused, copy, version] = *storage_;
  if (!copy.defined() || copy.scalar_type() != type || copy.device() != values.device()) {
    copy = values.detach().to(type);
  } else if (version != values._version()) {
    copy.copy_(values.detach());
  }
  version = values._version();
  return copy;
}

torch::Tensor Weight::product(const torch::Tensor& x, const Weight& bias, bool relu) const {
  return linear(x, tensor(), cast(x.scalar_type()), bias.tensor(), relu);
}

void Weight::to(const torch::Device& device) const {
  tensor().set_data(tensor().data().to(device));
}

void Weight::to(torch::ScalarType type) const {
  tensor().set_data(tensor().data().to(type));
}

}  // namespace prism
