// Compiled for AVX2 with FMA: bfloat16 tensors are widened as they are packed.
#include "prism/kernels/flash/operand_avx2.h"
#include "prism/kernels/flash/table.h"

namespace prism::flash {
namespace {

struct Single : Avx2Float32 {};

}  // namespace

const Kernels kAvx2 = make_kernels<Single, Single>("AVX2");

}  // namespace prism::flash
