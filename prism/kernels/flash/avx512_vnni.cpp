// Compiled for AVX512-VNNI without bfloat16 products: bfloat16 tensors are widened as they are packed or, in decoding,
// read.
#include "prism/kernels/flash/table.h"
#include "prism/kernels/simd/bytes_avx512_vnni.h"
#include "prism/kernels/simd/operand.h"

namespace prism::flash {
namespace {

struct Single : simd::SingleFloat32<simd::Avx512>, simd::ByteProducts {};

}  // namespace

const Kernels kAvx512Vnni = make_kernels<Single, Single>("AVX512-VNNI");

}  // namespace prism::flash
