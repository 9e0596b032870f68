// Compiled for AMX: products of bfloat16 pairs in tiles.
#include "prism/kernels/gemm/table.h"
#include "prism/kernels/simd/operand.h"
#include "prism/kernels/simd/operand_amx_bf16.h"

namespace prism::gemm {
namespace {

// Types local to this file, so that no function compiled for this instruction set is linked into another file.
struct Half : simd::TilesOfBfloat16 {};
struct Single : simd::SingleFloat32<simd::Avx512> {};

}  // namespace

const Kernels kAmxBf16 = make_kernels<Half, Single>();

}  // namespace prism::gemm
