// Compiled for AVX512-BF16 and AVX512-VNNI.
#include "prism/kernels/packed/ints_avx512_vnni.h"
#include "prism/kernels/packed/pairs_avx512_bf16.h"
#include "prism/kernels/packed/table.h"
#include "prism/kernels/packed/unpack_avx512.h"
#include "prism/kernels/simd/operand_avx512_bf16.h"

namespace prism::packed {
namespace {

// Types local to this file, so that no function compiled for this instruction set is linked into another file.
struct Op : UnpacksAvx512<simd::PairsOfBfloat16> {};
struct Ints : IntsAvx512, PairsInBfloat16 {};

}  // namespace

const Kernels kAvx512Bf16 = make_kernels<Op, Ints>();

}  // namespace prism::packed
