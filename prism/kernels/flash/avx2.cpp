// Compiled for AVX2 with FMA: bfloat16 tensors are widened as they are packed.
#include "prism/kernels/flash/table.h"
#include "prism/kernels/simd/operand.h"
#include "prism/kernels/simd/vector_avx2.h"

namespace prism::flash {
namespace {

struct Single : simd::SingleFloat32<simd::Avx2>, simd::NoByteProducts {};

}  // namespace

const Kernels kAvx2 = make_kernels<Single, Single>("AVX2");

}  // namespace prism::flash
