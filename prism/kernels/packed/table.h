// Builds the table of functions of one instruction set.
#pragma once

#include "prism/kernels/packed/decode.h"
#include "prism/kernels/packed/strips.h"

namespace prism::packed {

/// @tparam Op    the operand type of products for prompts.
/// @tparam Ints  see decode.h.
/// @tparam Storage  type of a prompt's rows.
template <class Op, class Ints, class Storage = typename Op::Element>
constexpr Kernels make_kernels() {
  return {sizeof(Storage) == 2 ? Type::bfloat16 : Type::float32, prompt_scratch<Op, Storage>,
          multiply_prompt<Op, Storage>, decoding_scratch<Ints>, multiply_decoding<Ints>};
}

}  // namespace prism::packed
