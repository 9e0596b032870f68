// A trained weight, held by handle so that several modules can share it.
//
//   Weight w({out, in});
//   auto y = w.product(x);                 // x W^T in x's dtype; the gradient goes to the float32 values
//   other.projection.weight = w;           // shared: listed, saved and updated once; gradients of both uses add up
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

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

  /// The values; an undefined tensor for an empty handle.
  const torch::Tensor& tensor() const;
  /// The values converted to `type`; tensor() itself if it has that dtype.
  const torch::Tensor& cast(torch::ScalarType type) const;
  /// x W^T + bias, or max(0, x W^T + bias), in x's dtype (kernels/linear.h). x [..., in] -> [..., out].
  torch::Tensor product(const torch::Tensor& x, const Weight& bias = {}, bool relu = false) const;

  /// Excludes rows from training: optimizers leave them unchanged. Once all rows are fixed, no gradient is computed;
  /// until then, that of all rows.
  void fix_rows(int64_t first, int64_t rows) const;
  /// Returns true if all of these rows are fixed.
  bool is_fixed(int64_t first, int64_t rows) const;
  /// Returns true if some row is fixed.
  bool has_fixed_rows() const { return !storage_->is_fixed.empty(); }

  /// Moves or converts the values in place: references to tensor() see the new values.
  void to(const torch::Device& device) const;
  void to(torch::ScalarType type) const;

 private:
  struct Storage {
    std::vector<int64_t> shape;
    std::optional<double> fill;
    torch::Tensor values;
    torch::Tensor copy;  ///< the values at `version`, in another dtype
    int64_t version = -1;
    std::vector<bool> is_fixed = {};  ///< of each row; empty: none is
  };
  std::shared_ptr<Storage> storage_;
};

}  // namespace prism
