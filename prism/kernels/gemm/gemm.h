// Products of large matrices on raw memory, without torch: the problem, and the functions of each instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "prism/kernels/simd/isa.h"
#include "prism/kernels/simd/type.h"

namespace prism::gemm {

using simd::Type;

/// A matrix stored as dense rows, `stride` elements apart; if `transposed`, as dense columns.
struct Matrix {
  const void* data = nullptr;
  int64_t stride = 0;
  bool transposed = false;
};

// M rows, N columns, K the inner axis

/// C = A B, or C += A B: A is [M, K], B is [K, N]. Sums are float32 and rounded once; they are split into blocks of the
/// inner axis that depend only on the shape. Values of bfloat16 matrices, their products and sums below the smallest
/// normal float32, 2^-126, may count as 0, and with AMX so may values of the C that is added to. The error of a sum is
/// then up to (K + 1) 2^-126 max(1, |a|, |b|).
struct Problem {
  Type type = Type::bfloat16;     ///< of A and B
  Type out_type = Type::float32;  ///< of C
  int64_t rows = 0, columns = 0, inner = 0;
  Matrix a, b;
  void* out = nullptr;  ///< C
  int64_t out_stride = 0;
  bool accumulate = false;       ///< C += A B; requires a float32 C
  const float* bias = nullptr;   ///< [N], added to every row of C before rounding, not with accumulate; null: none
  bool relu = false;             ///< applies max(0, .) to C before rounding, not with accumulate; a NaN stays
  std::byte* scratch = nullptr;  ///< Kernels::scratch_bytes() bytes, aligned to 64 bytes
  int threads = 1;
};

/// The functions of one instruction set. Results depend only on the shape and the values, not on the number of threads.
struct Kernels {
  size_t (*scratch_bytes)(const Problem&);
  void (*multiply)(const Problem&);
};

extern const Kernels kAmxBf16, kAvx512Bf16, kAvx512, kAvx2;

/// The kernels of an instruction set; null for portable.
inline const Kernels* kernels_of(Isa isa) {
  return choose_kernels(isa, kAmxBf16, kAvx512Bf16, kAvx512, kAvx512, kAvx2);
}

}  // namespace prism::gemm
