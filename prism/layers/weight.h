// A trained weight, held by handle so that several modules can share it.
//
//   Weight w({out, in});
//   auto y = w.product(x);                 // x W^T in x's dtype; the gradient goes to the float32 values
//   w.freeze();                            // packed bfloat16 instead of values: faster products, no gradients
//   other.projection.weight = w;           // shared: listed, saved and updated once; gradients of both uses add up
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "prism/layers/packed_weight.h"

namespace prism {

/// A handle: copies refer to the same weight. Training updates the values. Products in another dtype read a cached
/// copy, which is refreshed only when the values have changed.
class Weight {
 public:
  /// An empty handle without a weight.
  Weight() = default;
  /// float32 values that require gradients. Memory is allocated at the first call of tensor(), so a model can be
  /// described without allocating its weights.
  /// @param fill  initial value; std::nullopt: uninitialised.
  explicit Weight(std::vector<int64_t> shape, std::optional<double> fill = {});

  explicit operator bool() const { return storage_ != nullptr; }
  /// Returns true if both handles refer to the same weight.
  bool operator==(const Weight& other) const { return storage_ == other.storage_; }
  /// An address that identifies the weight: equal for all its handles, different for other weights.
  const void* identity() const { return storage_.get(); }

  const std::vector<int64_t>& shape() const { return storage_->shape; }
  int64_t numel() const;

  /// The values; an undefined tensor for an empty handle. @throws InputError if the weight is frozen.
  const torch::Tensor& tensor() const;
  /// The values converted to `type`; tensor() itself if it has that dtype.
  const torch::Tensor& cast(torch::ScalarType type) const;
  /// x W^T + bias, or max(0, x W^T + bias), in x's dtype (kernels/linear.h). x [..., in] -> [..., out].
  torch::Tensor product(const torch::Tensor& x, const ProductOptions& options = {}) const;
  /// Some rows in the dtype of the values, float32 if the weight is frozen: ids [...] int64 -> [..., in].
  /// Differentiable.
  torch::Tensor rows(const torch::Tensor& ids) const;

  /// Replaces the values of a matrix by packed bfloat16, for inference: less memory and faster products, but no
  /// gradients, no files and no values.
  void freeze() const;
  /// Replaces the values by packed ones of the same shape.
  void freeze(PackedWeight packed) const;
  /// The packed values; null unless the weight is frozen.
  const PackedWeight* packed() const { return storage_ ? storage_->packed.get() : nullptr; }
  torch::Device device() const { return packed() != nullptr ? torch::Device(torch::kCPU) : tensor().device(); }
  /// The dtype of the values; float32 if the weight is frozen.
  torch::ScalarType dtype() const { return packed() != nullptr ? torch::kFloat : tensor().scalar_type(); }

  /// Excludes rows from training: optimizers leave them unchanged. Once all rows are fixed, no gradient is computed;
  /// until then, that of all rows.
  void fix_rows(int64_t first, int64_t rows) const;
  /// Returns true if all of these rows are fixed.
  bool is_fixed(int64_t first, int64_t rows) const;
  /// Returns true if some row is fixed.
  bool has_fixed_rows() const { return !storage_->is_fixed.empty(); }

  /// Moves or converts the values in place: references to tensor() see the new values.
  void to(const torch::Device& target) const;
  void to(torch::ScalarType type) const;

 private:
  struct Storage {
    std::vector<int64_t> shape;
    std::optional<double> fill;
    torch::Tensor values;
    torch::Tensor copy;  ///< the values at `version`, in another dtype
    int64_t version = -1;
    std::vector<bool> is_fixed = {};  ///< of each row; empty: none is
    std::unique_ptr<PackedWeight> packed = {};
  };
  std::shared_ptr<Storage> storage_;
};

}  // namespace prism
