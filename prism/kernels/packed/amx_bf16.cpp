// Compiled for AMX: prompts in tiles, decoding with AVX512-VNNI and AVX512-BF16.
#include "prism/kernels/packed/ints_avx512_vnni.h"
#include "prism/kernels/packed/pairs_avx512_bf16.h"
#include "prism/kernels/packed/table.h"
#include "prism/kernels/packed/unpack_avx512.h"
#include "prism/kernels/simd/operand_amx_bf16.h"

namespace prism::packed {
namespace {

// Types local to this file, so that no function compiled for this instruction set is linked into another file.
struct Op : UnpacksAvx512<simd::TilesOfBfloat16> {};
struct Ints : IntsAvx512, PairsInBfloat16 {};

}  // namespace

const Kernels kAmxBf16 = make_kernels<Op, Ints>();

}  // namespace prism::packed
