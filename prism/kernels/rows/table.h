// Builds the table of functions of one instruction set from its vector type.
#pragma once

#include "prism/kernels/rows/cross_entropy_rows.h"
#include "prism/kernels/rows/glu_rows.h"
#include "prism/kernels/rows/norm_rows.h"
#include "prism/kernels/rows/pooled_rows.h"
#include "prism/kernels/rows/project_rows.h"
#include "prism/kernels/rows/relu_rows.h"
#include "prism/kernels/rows/rotate_rows.h"

namespace prism::rows {

/// @tparam Half, Single  the functions for bfloat16 and float32 tensors.
template <class Work, auto Half, auto Single>
constexpr auto by_type() {
  return +[](const Work& work, int64_t first, int64_t last) {
    (work.type == Type::bfloat16 ? Half : Single)(work, first, last);
  };
}

template <class Op>
constexpr Kernels make_kernels(const char* name) {
  return {
      name,
      by_type<Norm, norm_rows<Op, uint16_t>, norm_rows<Op, float>>(),
      by_type<NormGradient, norm_gradient_rows<Op, uint16_t>, norm_gradient_rows<Op, float>>(),
      by_type<Glu, glu_rows<Op, uint16_t>, glu_rows<Op, float>>(),
      by_type<GluGradient, glu_gradient_rows<Op, uint16_t>, glu_gradient_rows<Op, float>>(),
      by_type<ReluGradient, relu_gradient_rows<Op, uint16_t>, relu_gradient_rows<Op, float>>(),
      by_type<Rotation, rotate_rows<Op, uint16_t>, rotate_rows<Op, float>>(),
      by_type<CrossEntropy, cross_entropy_rows<Op, uint16_t>, cross_entropy_rows<Op, float>>(),
      by_type<ColumnSums, add_rows<Op, uint16_t>, add_rows<Op, float>>(),
      project_rows<Op>,
      softmax_rows<Op>,
  };
}

}  // namespace prism::rows
