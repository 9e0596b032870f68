// Compiled for AVX2 with FMA.
#include "prism/kernels/rows/table.h"
#include "prism/kernels/simd/vector_avx2.h"

namespace prism::rows {
namespace {

// A type local to this file, so that no function compiled for this instruction set is linked into another file.
struct Op : simd::Avx2 {
  static constexpr int kExpDegree = 5;
};

}  // namespace

const Kernels kAvx2 = make_kernels<Op>("AVX2");

}  // namespace prism::rows
