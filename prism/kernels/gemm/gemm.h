// Products of large matrices on raw memory, without torch: what each instruction set offers, and what it is asked.
#pragma once

#include <cstddef>
#include <cstdint>

#include "prism/kernels/simd/isa.h"
#include "prism/kernels/simd/type.h"

namespace prism::gemm {

using simd::Type;

/// Rows of dense values, `stride` elements apart; transposed: the columns of the matrix lie so.
struct Matrix {
  const void* data = nullptr;
  int64_t stride = 0;
  bool transposed = false;
};

// M rows, N columns, K the inner axis

/// C = A B, or C += A B, of bfloat16 matrices: A is [M, K], B is [K, N]. Sums are float32, in blocks of the inner axis
/// that depend on the shape alone, and rounded once. Values, products and sums below the smallest normal float32,
/// 2^-126, may count as 0, which costs a sum up to (K + 1) 2^-126 max(1, |a|, |b|); with AMX the C that is added to,
/// too.
struct Problem {
  Type out_type = Type::float32;  ///< of C
  int64_t rows = 0, columns = 0, inner = 0;
  Matrix a, b;
  void* out = nullptr;  ///< C
  int64_t out_stride = 0;
  bool accumulate = false;       ///< needs a float32 C
  const float* bias = nullptr;   ///< [N], added to every row of a bfloat16 C before it is rounded; null: none
  bool relu = false;             ///< max(0, .) of what a bfloat16 C is rounded from; a NaN stays
  std::byte* scratch = nullptr;  ///< Kernels::scratch_bytes() bytes from a 64-byte boundary
  int threads = 1;
};

/// The functions of one instruction set. Results depend on the shape and the values alone, not on the threads.
struct Kernels {
  size_t (*scratch_bytes)(const Problem&);
  void (*multiply)(const Problem&);
};

extern const Kernels kAmxBf16, kAvx512Bf16;

/// The kernels of an instruction set; null for those on which LibTorch's are taken.
inline const Kernels* kernels_of(Isa isa) {
  if (isa == Isa::amx_bf16) return &kAmxBf16;
  return isa == Isa::avx512_bf16 ? &kAvx512Bf16 : nullptr;
}

}  // namespace prism::gemm
