// Builds the table of functions of one instruction set from its operand types.
#pragma once

#include "prism/kernels/gemm/blocks.h"

namespace prism::gemm {

/// @tparam Half    operands for bfloat16 matrices; if they are float32, values are widened as they are packed.
/// @tparam Single  operands for float32 matrices.
template <class Half, class Single>
constexpr Kernels make_kernels() {
  return {
      [](const Problem& p) {
        return p.type == Type::bfloat16 ? Multiplication<Half, uint16_t>::bytes(p)
                                        : Multiplication<Single, float>::bytes(p);
      },
      [](const Problem& p) {
        p.type == Type::bfloat16 ? Multiplication<Half, uint16_t>(p).run() : Multiplication<Single, float>(p).run();
      },
  };
}

}  // namespace prism::gemm
