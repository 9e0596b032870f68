// Compiled for AVX-512 without bfloat16 products.
#include "prism/kernels/gemm/table.h"
#include "prism/kernels/simd/operand.h"
#include "prism/kernels/simd/vector_avx512.h"

namespace prism::gemm {
namespace {

// A type local to this file, so that no function compiled for this instruction set is linked into another file.
struct Single : simd::SingleFloat32<simd::Avx512> {};

}  // namespace

const Kernels kAvx512 = make_kernels<Single, Single>();

}  // namespace prism::gemm
