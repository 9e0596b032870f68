// ggml's block types: how the values of a tensor in a GGUF file are stored. Consecutive values of a row form a block
// with scales of its own; in the unquantised types a block is one value.
//
//   const BlockLayout& layout = block_layout(BlockType::q4_k);   // 256 values in 144 bytes
//
// Containers (formats) and arithmetic (kernels/quant) both use it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace prism {

/// The values are ggml's type numbers. Source: enum ggml_type in ggml.h.
enum class BlockType : uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q2_k = 10,
  q3_k = 11,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  iq4_nl = 20,
  bf16 = 30
};

struct BlockLayout {
  BlockType type = BlockType::f32;
  std::string_view name = {};  ///< ggml's, e.g. "Q4_K"
  int64_t elements = 1;        ///< values per block
  int64_t bytes = 1;           ///< bytes per block
};

/// The layouts of all types, in the order of their numbers.
std::span<const BlockLayout> block_layouts();
const BlockLayout& block_layout(BlockType type);

/// The type with this ggml number.
/// @param where  start of the message, e.g. the file and the tensor.
/// @throws InputError naming `operation`, the number, ggml's name for it if it has one, and the types that exist here.
BlockType find_block_type(uint32_t number, std::string_view operation, std::string_view where);

/// Bytes of a tensor of this shape, whose rows are the last dimension; without dimensions it has one value.
/// std::nullopt if a dimension is negative, the block does not divide a row, or the values or bytes overflow int64
/// (dimensions of 0 count as 1 for the latter).
std::optional<int64_t> block_tensor_bytes(BlockType type, const std::vector<int64_t>& shape);

}  // namespace prism
