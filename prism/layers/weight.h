// A trained weight: one owner of its values and of their copies, held by handle, so that two modules may use one.
//
//   Weight w({out, in});
//   auto y = w.product(x);                 // x W^T in x's dtype; the gradient goes to the float32 values
//   other.projection.weight = w;           // shared: listed, saved and stepped once, the gradients of both uses add up
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace prism {

/// A handle: copies are the same weight. Values are what is trained; the copy that products in another dtype read is
/// made again only when the values have changed.
class Weight {
 public:
  /// No weight.
  Weight() = default;
  /// float32 values that want gradients. Memory is taken at the first use of tensor(), so that a model can be described
  /// without being held.
  /// @param fill  what all values are at first; absent: whatever the memory holds.
  explicit Weight(std::vector<int64_t> shape, std::optional<double> fill = {});

  explicit operator bool() const { return storage_ != nullptr; }
  /// Whether both are the same weight.
  bool operator==(const Weight& other) const { return storage_ == other.storage_; }
  /// The same for all handles of a weight, and for no other.
  const void* identity() const { return storage_.get(); }

  const std::vector<int64_t>& shape() const { return storage_->shape; }
  int64_t numel() const;

  /// The values themselves; undefined for no weight.
  const torch::Tensor& tensor() const;
  /// The values in `type`; tensor() itself where that is its dtype.
  const torch::Tensor& cast(torch::ScalarType type) const;
  /// x W^T + bias, or max(0, x W^T + bias), in x's dtype (kernels/linear.h). x [..., in] -> [..., out].
  torch::Tensor product(const torch::Tensor& x, const Weight& bias = {}, bool relu = false) const;

  /// Moves or converts the values; whoever holds tensor() sees the new ones.
  void to(const torch::Device& device) const;
  void to(torch::ScalarType type) const;

 private:
  struct Storage {
    std::vector<int64_t> shape;
    std::optional<double> fill;
    torch::Tensor values;
    torch::Tensor copy;  ///< of the values as they were at `version`, in another dtype
    int64_t version = -1;
  };
  std::shared_ptr<Storage> storage_;
};

}  // namespace prism
