#include "prism/layers/weight.h"

#include <ATen/record_function.h>

#include <algorithm>
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
  auto& values = storage_->values;
  if (!values.defined()) {
    values = torch::empty(shape(), torch::kFloat);
    if (storage_->fill) values.fill_(*storage_->fill);
    values.set_requires_grad(!has_fixed_rows() || !is_fixed(0, shape()[0]));
  }
  return values;
}

const torch::Tensor& Weight::cast(torch::ScalarType type) const {
  const auto& values = tensor();
  if (values.scalar_type() == type) return values;
  RECORD_FUNCTION("prism::cast_weight", {});
  auto& copy = storage_->copy;
  if (!copy.defined() || copy.scalar_type() != type || copy.device() != values.device()) {
    copy = values.detach().to(type);
  } else if (storage_->version != values._version()) {
    copy.copy_(values.detach());
  }
  storage_->version = values._version();
  return copy;
}

torch::Tensor Weight::product(const torch::Tensor& x, const Weight& bias, bool relu) const {
  return linear(x, tensor(), cast(x.scalar_type()), bias.tensor(), relu);
}

void Weight::fix_rows(int64_t first, int64_t rows) const {
  auto& fixed = storage_->is_fixed;
  fixed.resize(static_cast<size_t>(shape()[0]));
  std::fill_n(fixed.begin() + first, rows, true);
  if (is_fixed(0, shape()[0]) && storage_->values.defined()) storage_->values.set_requires_grad(false);
}

bool Weight::is_fixed(int64_t first, int64_t rows) const {
  const auto& fixed = storage_->is_fixed;
  return !fixed.empty() && std::all_of(fixed.begin() + first, fixed.begin() + first + rows, [](bool is) { return is; });
}

void Weight::to(const torch::Device& device) const {
  tensor().set_data(tensor().data().to(device));
}

void Weight::to(torch::ScalarType type) const {
  tensor().set_data(tensor().data().to(type));
}

}  // namespace prism
