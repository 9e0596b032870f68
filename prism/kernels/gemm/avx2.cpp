// Compiled for AVX2 with FMA and F16C.
#include "prism/kernels/gemm/table.h"
#include "prism/kernels/simd/operand.h"
#include "prism/kernels/simd/vector_avx2.h"

namespace prism::gemm {
namespace {

// A type local to this file, so that no function compiled for this instruction set is linked into another file.
struct Single : simd::SingleFloat32<simd::Avx2> {};

}  // namespace

const Kernels kAvx2 = make_kernels<Single, Single>();

}  // namespace prism::gemm
