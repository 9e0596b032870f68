// Compiled for AVX-512.
#include "prism/kernels/rows/table.h"
#include "prism/kernels/simd/vector_avx512.h"

namespace prism::rows {
namespace {

// A type local to this file, so that no function compiled for this instruction set is linked into another file.
struct Op : simd::Avx512 {
  static constexpr int kExpDegree = 5;
};

}  // namespace

const Kernels kAvx512 = make_kernels<Op>("AVX-512");

}  // namespace prism::rows
