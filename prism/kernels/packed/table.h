// Builds the table of functions of one instruction set.
#pragma once

#include "prism/kernels/packed/decode.h"
#include "prism/kernels/packed/strips.h"

namespace prism::packed {

/// @tparam Op    the operand type of products for prompts.
/// @tparam Ints  see decode.h.
template <class Op, class Ints>
constexpr Kernels make_kernels() {
  return {sizeof(typename Op::Element) == 2 ? Type::bfloat16 : Type::float32, prompt_scratch<Op>, multiply_prompt<Op>,
          decoding_scratch<Ints>, multiply_decoding<Ints>};
}

}  // namespace prism::packed
