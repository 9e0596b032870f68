// Compiled for AVX512-BF16: products of bfloat16 pairs.
#include "prism/kernels/gemm/table.h"
#include "prism/kernels/simd/operand.h"
#include "prism/kernels/simd/operand_avx512_bf16.h"

namespace prism::gemm {
namespace {

// Types local to this file, so that no function compiled for this instruction set is linked into another file.
struct Half : simd::PairsOfBfloat16 {};
struct Single : simd::SingleFloat32<simd::Avx512> {};

}  // namespace

const Kernels kAvx512Bf16 = make_kernels<Half, Single>();

}  // namespace prism::gemm
