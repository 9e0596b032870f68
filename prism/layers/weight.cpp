#include "prism/layers/weight.h"

#include <ATen/Functions.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "prism/core/error.h"
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
  PRISM_CHECK(!storage_->packed, "weights",
              "expected weights that can be trained, saved and read; found packed ones; add --weights float32.");
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

torch::Tensor Weight::product(const torch::Tensor& x, const ProductOptions& options) const {
  if (packed() != nullptr) return packed()->product(x, options);
  return linear(x, tensor(), cast(x.scalar_type()), options.bias, options.relu);
}

torch::Tensor Weight::rows(const torch::Tensor& ids) const {
  return packed() != nullptr ? packed()->rows(ids) : at::embedding(tensor(), ids);
}

void Weight::freeze() const {
  PRISM_ASSERT(shape().size() == 2, "weights", "only matrices are frozen");
  if (packed() != nullptr) return;
  PackedWeight rows(shape()[1], {{BlockType::bf16, shape()[0]}});
  rows.set_rows(0, tensor());
  freeze(std::move(rows));
}

void Weight::freeze(PackedWeight rows) const {
  PRISM_ASSERT(shape() == std::vector<int64_t>({rows.out(), rows.in()}), "weights", "packed rows of another shape");
  storage_->packed = std::make_unique<PackedWeight>(std::move(rows));
  storage_->values = storage_->copy = torch::Tensor();
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

void Weight::to(const torch::Device& target) const {
  if (target == device()) return;
  tensor().set_data(tensor().data().to(target));
}

void Weight::to(torch::ScalarType type) const {
  tensor().set_data(tensor().data().to(type));
}

}  // namespace prism
