// Compiled for AVX512-VNNI without bfloat16 products: values in bfloat16 are widened as they are packed or, in
// decoding, read.
#include "prism/kernels/packed/ints_avx512_vnni.h"
#include "prism/kernels/packed/pairs_float32.h"
#include "prism/kernels/packed/table.h"
#include "prism/kernels/packed/unpack_avx512.h"
#include "prism/kernels/simd/operand.h"

namespace prism::packed {
namespace {

// Types local to this file, so that no function compiled for this instruction set is linked into another file.
struct Op : UnpacksAvx512<simd::SingleFloat32<simd::Avx512>> {};
struct Ints : IntsAvx512, PairsInFloat32<simd::Avx512> {};

}  // namespace

const Kernels kAvx512Vnni = make_kernels<Op, Ints, uint16_t>();

}  // namespace prism::packed
