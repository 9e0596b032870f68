// Compiled for AVX-512 without bfloat16 products: bfloat16 tensors are widened as they are packed.
#include "prism/kernels/flash/table.h"
#include "prism/kernels/simd/operand.h"
#include "prism/kernels/simd/vector_avx512.h"

namespace prism::flash {
namespace {

struct Single : simd::SingleFloat32<simd::Avx512>, simd::NoByteProducts {};

}  // namespace

const Kernels kAvx512 = make_kernels<Single, Single>("AVX-512");

}  // namespace prism::flash
