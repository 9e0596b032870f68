// A weight that no longer changes, packed in the order in which products read it (kernels/packed).
//
//   PackedWeight packed(in, {{BlockType::q4_1, 576}, {BlockType::bf16, 192}});   // rows of Q4_1, then of bfloat16
//   packed.set_blocks(0, blocks);
//   auto y = packed.product(x, {.decoding = 1});                                 // the first row of x is decoded
#pragma once

#include <torch/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "prism/core/numbers/block_type.h"
#include "prism/kernels/packed/packed.h"

namespace prism {

/// How a product with a weight is computed.
struct ProductOptions {
  torch::Tensor bias = {};  ///< [out], float32; undefined: none
  bool relu = false;        ///< applies max(0, .)
  int64_t decoding = 0;     ///< packed weights: the first rows of x that are decoded; the others belong to prompts
  bool single = false;      ///< packed weights: the result is float32, not x's dtype
};

class PackedWeight {
 public:
  /// Rows of one type, which follow those of the parts before.
  struct Part {
    BlockType type = BlockType::bf16;
    int64_t rows = 0;
  };

  /// Allocates the memory, in which all values are 0.
  /// @param in     columns; a multiple of 32 unless all parts are bfloat16.
  /// @param parts  of types that can be packed.
  PackedWeight(int64_t in, const std::vector<Part>& parts);

  /// Packs rows from `first` on, all of one part. @param bytes  uint8 [rows, bytes of a row in blocks].
  void set_blocks(int64_t first, const torch::Tensor& bytes);
  /// Packs rows that are bfloat16 from values of any floating-point dtype, [rows, in].
  void set_rows(int64_t first, const torch::Tensor& values);

  /// f(x W^T + bias): x [..., in] -> [..., out], x's dtype. Without gradients.
  ///
  /// Rows of prompts are multiplied in bfloat16 (float32 on processors without such products), with W's values rounded
  /// to it. Rows that are decoded are multiplied in integers by blocks, where W is quantised (packed.h). So the result
  /// of a row depends only on its values and on whether it is decoded.
  torch::Tensor product(const torch::Tensor& x, const ProductOptions& options) const;
  /// The same for rows of prompts: x [M, in] -> out [M, out], both dense.
  void product_into(const torch::Tensor& out, const torch::Tensor& x, const ProductOptions& options) const;
  /// f(x V^T + bias), where V [out, blocks width] holds blocks of `width` columns of W side by side, for rows of
  /// prompts.
  /// @param blocks  their numbers. @param width  even. @pre all values are bfloat16, and so are x, out and
  /// prompt_type().
  void product_of_columns(const torch::Tensor& out, const torch::Tensor& x, std::span<const int64_t> blocks,
                          int64_t width, const ProductOptions& options) const;
  /// The values of some rows: ids [...] int64 -> [..., in] float32.
  torch::Tensor rows(const torch::Tensor& ids) const;

  /// The dtype in which prompts are multiplied on this processor; std::nullopt without prism's kernels.
  static std::optional<torch::ScalarType> prompt_type();

  int64_t bytes() const;
  /// All of them.
  std::span<const std::byte> data() const;
  int64_t in() const { return in_; }
  int64_t out() const { return out_; }
  /// Equal neighbouring types are one part.
  std::vector<Part> parts() const;

 private:
  struct Stored {
    int64_t first = 0;
    packed::Matrix matrix;
  };
  const Stored& part_of(int64_t row) const;
  /// Multiplies rows [first, end) of x, all of one role.
  void multiply(const torch::Tensor& x_MK, const torch::Tensor& out_MN, int64_t first, int64_t end, bool decodes,
                const ProductOptions& options) const;
  /// The same without kernels.
  void multiply_plainly(const torch::Tensor& x_MK, const torch::Tensor& out_MN, const ProductOptions& options) const;

  int64_t in_, out_ = 0;
  torch::Tensor memory_;
  std::vector<Stored> parts_;
};

}  // namespace prism
