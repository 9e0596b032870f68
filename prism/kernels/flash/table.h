// Builds the table of functions of one instruction set from its operand types.
#pragma once

#include "prism/kernels/flash/backward.h"
#include "prism/kernels/flash/decode.h"

namespace prism::flash {

template <class Op>
size_t forward_bytes(const Problem& p) {
  return decodes(p) ? DecodeLayout<Op>(p).bytes(p) : ForwardLayout<Op>(p).bytes(p);
}

template <class Op, class Storage>
void forward(const Forward& f) {
  decodes(f) ? run_decode<Op, Storage>(f) : run_forward<Op, Storage>(f);
}

/// @tparam Half    operands for bfloat16 tensors.
/// @tparam Single  operands for float32 tensors.
template <class Half, class Single>
constexpr Kernels make_kernels(const char* name) {
  return {
      name,
      [](const Problem& p) { return p.type == Type::bfloat16 ? forward_bytes<Half>(p) : forward_bytes<Single>(p); },
      [](const Forward& f) { f.type == Type::bfloat16 ? forward<Half, uint16_t>(f) : forward<Single, float>(f); },
      [](const Problem& p) {
        return p.type == Type::bfloat16 ? BackwardLayout<Half>(p).bytes(p) : BackwardLayout<Single>(p).bytes(p);
      },
      [](const Backward& b) {
        b.type == Type::bfloat16 ? run_backward<Half, uint16_t>(b) : run_backward<Single, float>(b);
      },
  };
}

}  // namespace prism::flash
