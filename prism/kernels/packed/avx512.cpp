// Compiled for AVX-512 without bfloat16 and VNNI.
#include "prism/kernels/packed/ints_avx2.h"
#include "prism/kernels/packed/pairs_float32.h"
#include "prism/kernels/packed/table.h"
#include "prism/kernels/packed/unpack_avx512.h"
#include "prism/kernels/simd/operand.h"
#include "prism/kernels/simd/vector_avx512.h"

namespace prism::packed {
namespace {

// Types local to this file, so that no function compiled for this instruction set is linked into another file.
struct Op : UnpacksAvx512<simd::SingleFloat32<simd::Avx512>> {};
struct Ints : IntsAvx2, PairsInFloat32<simd::Avx2> {};

}  // namespace

const Kernels kAvx512 = make_kernels<Op, Ints>();

}  // namespace prism::packed
