// Compiled for AVX512-BF16: products of bfloat16 pairs.
#include <omp.h>

#include "prism/kernels/gemm/blocks.h"
#include "prism/kernels/simd/operand_avx512_bf16.h"

namespace prism::gemm {
namespace {

// A type local to this file, so that no function compiled for this instruction set is linked into another file.
struct Half : simd::PairsOfBfloat16 {};

}  // namespace

const Kernels kAvx512Bf16 = {
    [](const Problem& p) { return Multiplication<Half, uint16_t>::bytes(p); },
    [](const Problem& p) { Multiplication<Half, uint16_t>(p).run(); },
};

}  // namespace prism::gemm
