// Products with weights that no longer change, on raw memory and without torch. A weight is packed once, in the order
// in which products read it:
//
//   packed::Matrix w{BlockType::q4_1, rows, inner};
//   w.data = memory;                                   // packed_bytes(w) bytes, aligned to 64 bytes
//   packed::pack_row(w, 0, blocks);                    // a row as it is in a GGUF file
//   kernels.multiply_prompt(problem);
//
// Rows of a prompt and rows that are decoded have kernels of their own, because the former are limited by products and
// the latter by reading weights. Which of them computes a row never depends on how many rows share the call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "prism/core/numbers/block_type.h"
#include "prism/kernels/simd/force_inline.h"
#include "prism/kernels/simd/isa.h"
#include "prism/kernels/simd/type.h"

namespace prism::packed {

using simd::Type;

constexpr int64_t kStripRows = 16;  ///< rows of W that lie side by side
constexpr int64_t kBlock = 32;      ///< values of a row with scales of their own

/// The code of the value 0. Types with a minimum have none.
PRISM_FORCE_INLINE constexpr int zero_code(BlockType type) {
  return type == BlockType::q4_0 ? 8 : type == BlockType::q5_0 ? 16 : 0;
}
PRISM_FORCE_INLINE constexpr bool has_minimum(BlockType type) {
  return type == BlockType::q4_1 || type == BlockType::q5_1;
}
/// Returns true for types of 5 bits, whose fifth bits are apart from the others.
PRISM_FORCE_INLINE constexpr bool has_fifths(BlockType type) {
  return type == BlockType::q5_0 || type == BlockType::q5_1;
}
/// Bytes of a strip's codes of one block, without fifth bits.
PRISM_FORCE_INLINE constexpr int64_t code_bytes(BlockType type) {
  return kStripRows * kBlock * (type == BlockType::bf16 ? 4 : type == BlockType::q8_0 ? 2 : 1) / 2;
}

/// W [rows, inner]: strips of 16 rows, the last one padded with zeros. A strip of Q4_0, Q4_1, Q5_0, Q5_1 or Q8_0 holds
/// for each block of 32 columns
///
///   codes     4-bit types: four times 16 rows of 4 bytes, whose low halves are the block's first 16 codes and whose
///             high halves its last 16; Q8_0: eight times 16 rows of 4 codes
///   fifths    Q5_0, Q5_1: eight masks of 64 bits, the fifth bits of eight times 16 rows of 4 codes
///   scales    16 times F16
///   minima    Q4_1, Q5_1: 16 times F16
///
/// and keeps those of all blocks together: first all codes, then all fifths, and so on. A strip of BF16 holds for each
/// pair of columns 16 rows of 2 values, as products of bfloat16 pairs take them.
struct Matrix {
  BlockType type = BlockType::bf16;
  int64_t rows = 0, inner = 0;
  std::byte* data = nullptr;  ///< packed_bytes() bytes, aligned to 64 bytes

  PRISM_FORCE_INLINE int64_t blocks() const { return (inner + kBlock - 1) / kBlock; }
  PRISM_FORCE_INLINE int64_t strips() const { return (rows + kStripRows - 1) / kStripRows; }
};

/// Where a strip's parts begin, in bytes.
struct StripLayout {
  int64_t fifths = 0, scales = 0, minima = 0, bytes = 0;

  PRISM_FORCE_INLINE constexpr StripLayout(BlockType type, int64_t blocks) {
    constexpr int64_t kHalves = kStripRows * 2;  // bytes of a 16-bit number for each row
    fifths = blocks * code_bytes(type);
    scales = fifths + (has_fifths(type) ? blocks * kStripRows * kBlock / 8 : 0);
    minima = scales + (type == BlockType::bf16 ? 0 : blocks * kHalves);
    bytes = (minima + (has_minimum(type) ? blocks * kHalves : 0) + 63) / 64 * 64;
  }
};

/// The parts of a quantised strip.
struct QuantisedStrip {
  const uint8_t* codes;
  const uint64_t* fifths;
  const uint16_t *scales, *minima;

  PRISM_FORCE_INLINE QuantisedStrip(const std::byte* strip, BlockType type, int64_t blocks) {
    const StripLayout layout(type, blocks);
    codes = reinterpret_cast<const uint8_t*>(strip);
    fifths = reinterpret_cast<const uint64_t*>(strip + layout.fifths);
    scales = reinterpret_cast<const uint16_t*>(strip + layout.scales);
    minima = reinterpret_cast<const uint16_t*>(strip + layout.minima);
  }
};

/// Calls f with a type that can be packed, as an integral constant.
template <class F>
PRISM_FORCE_INLINE void with_type(BlockType type, const F& f) {
  switch (type) {
    case BlockType::q4_0:
      return f(std::integral_constant<BlockType, BlockType::q4_0>());
    case BlockType::q4_1:
      return f(std::integral_constant<BlockType, BlockType::q4_1>());
    case BlockType::q5_0:
      return f(std::integral_constant<BlockType, BlockType::q5_0>());
    case BlockType::q5_1:
      return f(std::integral_constant<BlockType, BlockType::q5_1>());
    case BlockType::q8_0:
      return f(std::integral_constant<BlockType, BlockType::q8_0>());
    default:
      return f(std::integral_constant<BlockType, BlockType::bf16>());
  }
}

/// Returns true if weights of this type can be packed: BF16, Q8_0, Q4_0, Q4_1, Q5_0 and Q5_1.
bool can_pack(BlockType type);

/// Bytes of a packed weight.
int64_t packed_bytes(const Matrix& w);

/// Packs a row of a GGUF tensor, or of bfloat16 values. Rows may be packed in any order, and by several threads if each
/// has strips of its own. The memory of rows after the last must hold zeros.
/// @param row     of W.
/// @param source  the row's blocks.
void pack_row(const Matrix& w, int64_t row, const std::byte* source);

/// Unpacks a row to float32, with the values that dequantise() gives.
/// @param out  [inner].
void unpack_row(const Matrix& w, int64_t row, float* out);

// M rows of x, N rows of W, K columns of both

/// Y = f(X W^T + bias), where f is the identity or max(0, .).
struct Problem {
  Matrix w;
  Type type = Type::bfloat16;      ///< of X
  Type out_type = Type::bfloat16;  ///< of Y
  int64_t rows = 0;                ///< M
  const void* x = nullptr;         ///< [M, K]
  int64_t x_stride = 0;
  void* out = nullptr;  ///< [M, N]
  int64_t out_stride = 0;
  const float* bias = nullptr;  ///< [N]; null: none
  bool relu = false;
  std::byte* scratch = nullptr;  ///< as many bytes as the kernel asks for, aligned to 64 bytes
  int threads = 1;
};

/// The functions of one instruction set. A row's result depends only on its values and W, not on the other rows of the
/// call nor on the number of threads.
struct Kernels {
  /// For rows of a prompt. X must have prompt_type; Y may be float32, or of that type. Values of W are those of
  /// unpack_row(), rounded to bfloat16 where pairs are multiplied.
  Type prompt_type;
  size_t (*prompt_scratch)(const Problem&);
  void (*multiply_prompt)(const Problem&);

  /// For rows that are decoded. Quantised weights are multiplied in integers: each block of x is rounded to codes of 15
  /// bits, q = round(x / d) with d = max|x| / 16256, so that
  ///
  ///   sum_k w_k x_k = sum over blocks of  d_w d (sum_k q_k c_k - z sum_k q_k) + m_w d sum_k q_k
  ///
  /// where c, d_w, m_w are W's codes, scale and minimum, and z is 8, 16 or 0. A code is two of 8 bits, q = 128 h + l.
  /// Sums over a block are those of integers; blocks are added in float32, in order. Blocks of x whose largest
  /// magnitude is below 2^-100 count as zeros.
  size_t (*decoding_scratch)(const Problem&);
  void (*multiply_decoding)(const Problem&);
};

extern const Kernels kAmxBf16, kAvx512Bf16, kAvx512Vnni, kAvx512, kAvx2;

/// The kernels of an instruction set; null for portable.
inline const Kernels* kernels_of(Isa isa) {
  return choose_kernels(isa, kAmxBf16, kAvx512Bf16, kAvx512Vnni, kAvx512, kAvx2);
}

}  // namespace prism::packed
