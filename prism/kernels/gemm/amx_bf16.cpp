// Compiled for AMX: products of bfloat16 pairs in tiles.
#include <omp.h>

#include "prism/kernels/gemm/blocks.h"
#include "prism/kernels/simd/operand_amx_bf16.h"

namespace prism::gemm {
namespace {

// A type local to this file, so that no function compiled for this instruction set is linked into another file.
struct Half : simd::TilesOfBfloat16 {};

}  // namespace

const Kernels kAmxBf16 = {
    [](const Problem& p) { return Multiplication<Half, uint16_t>::bytes(p); },
    [](const Problem& p) { Multiplication<Half, uint16_t>(p).run(); },
};

}  // namespace prism::gemm
