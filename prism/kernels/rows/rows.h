// The memory-bound work between products, row by row on raw memory, without torch: the functions of each instruction
// set.
//
// A function computes the rows [first, last) on the calling thread. Unless stated otherwise, rows are independent of
// each other and matrices are dense and row-major. Arithmetic is float32; results are rounded once.
#pragma once

#include <cstdint>

#include "prism/kernels/simd/isa.h"
#include "prism/kernels/simd/type.h"

namespace prism::rows {

using simd::Type;

// N rows, d width

/// s = x + branch,  r = 1 / sqrt(mean((s - m)^2) + eps),  y = (s - m) r w + b. LayerNorm: m = mean(s); RMSNorm: m = 0.
struct Norm {
  Type type = Type::float32;  ///< of branch and y
  int64_t width = 0;
  float eps = 0;
  const float *x = nullptr, *weight = nullptr, *bias = nullptr;  ///< [N, d]; w [d]; b [d], null: 0
  const void* branch = nullptr;                                  ///< [N, d]; null: s is x
  float* sum = nullptr;                                          ///< s [N, d], written only if there is a branch
  float* inverse = nullptr;                                      ///< r [N]; null: not wanted
  float* mean = nullptr;                                         ///< m [N]; null: RMSNorm
  void* y = nullptr;
  float* unrounded = nullptr;  ///< y in float32, [N, d]; null: not wanted
};

/// With g = (dy + dy') w and e = (s - m) r:  dx = ds + r (g - mean(g) - e mean(g e)),  dbranch = dx rounded,
/// dw += sum over the rows of (dy + dy') e,  db += sum over the rows of dy + dy'. RMSNorm: without mean(g).
struct NormGradient {
  Type type = Type::float32;  ///< of dy and dbranch
  int64_t width = 0;
  const float *sum = nullptr, *weight = nullptr, *inverse = nullptr;
  const float* mean = nullptr;  ///< null: RMSNorm
  const void* d_y = nullptr;
  const float* d_unrounded = nullptr;  ///< dy', the gradient of Norm::unrounded; null: 0
  const float* d_sum = nullptr;        ///< ds, the gradient that reaches s without passing the norm; null: 0
  float* d_x = nullptr;
  void* d_branch = nullptr;   ///< null: there was no branch
  float* d_weight = nullptr;  ///< [d]
  float* d_bias = nullptr;    ///< [d]; null: there is no bias
};

/// y = g up with g = silu(gate), or g = silu(gate silu(inner)).
struct Glu {
  Type type = Type::float32;
  int64_t width = 0;
  int64_t gate_stride = 0, up_stride = 0;  ///< values from row to row: of gate and inner; of up
  const void* gate = nullptr;
  const void* inner = nullptr;  ///< null: g = silu(gate)
  const void* up = nullptr;
  void* y = nullptr;
};

/// With z = gate silu(inner), or gate:  dup = dy silu(z),  dz = dy up silu'(z),  dgate = dz silu(inner) or dz,
/// dinner = dz gate silu'(inner), where silu'(z) = s (1 + z (1 - s)) with s = 1 / (1 + e^-z).
struct GluGradient : Glu {  // y is not read; the strides hold for the gradients, too
  const void* d_y = nullptr;
  void *d_gate = nullptr, *d_inner = nullptr, *d_up = nullptr;
};

/// dx = dy where y > 0, else 0: back through y = max(0, x). A NaN in y counts as positive.
struct ReluGradient {
  Type type = Type::float32;
  int64_t width = 0;
  const void *y = nullptr, *d_y = nullptr;
  void* d_x = nullptr;
};

/// (a, b) -> (a cos - b sin, b cos + a sin) with a, b half a head apart, in the first `rotated` heads of a row.
struct Rotation {
  Type type = Type::float32;
  int64_t heads = 0, rotated = 0, head_dim = 0;
  int64_t positions = 1;                       ///< rows of the tables; row n takes position n % positions
  float direction = 1;                         ///< -1: inverse rotation
  const float *cos = nullptr, *sin = nullptr;  ///< [positions, head_dim / 2]
  const void* in = nullptr;
  void* out = nullptr;  ///< may be `in`
};

/// loss = log sum_v exp(z_v) - z_label; 0 for rows of label -1.
struct CrossEntropy {
  Type type = Type::float32;
  int64_t classes = 0;
  void* logits = nullptr;           ///< [N, classes]; overwritten by the gradient if `gradient`
  const int64_t* labels = nullptr;  ///< [N]
  float* losses = nullptr;          ///< [N]
  bool gradient = false;            ///< share (softmax(z) (1 + 2 lse_weight lse) - one-hot(label)); zeros for label -1
  float share = 1;
  float lse_weight = 0;  ///< weight of lse^2, lse = log sum exp(z), in the loss
};

/// sums += the rows, in order.
struct ColumnSums {
  Type type = Type::float32;
  int64_t width = 0, stride = 0;  ///< of x: values per row; distance between rows
  const void* x = nullptr;
  float* sums = nullptr;  ///< [d]
};

/// y_rn = x_r . w_n + b_n, or max(0, .): a product of few rows x_r, which packs nothing. Its rows are those of w. Each
/// sum has one order, whatever the number of x_r.
struct Projection {
  int64_t inner = 0, x_rows = 0;
  int64_t x_stride = 0, w_stride = 0, y_stride = 0;         ///< from row to row; y: from r to r + 1
  const float *x = nullptr, *w = nullptr, *bias = nullptr;  ///< bias [N], null: 0
  bool relu = false;
  float* y = nullptr;
};

/// x = e^(scale x) / sum over the row of e^(scale x), in place. Equal values become equal.
struct Softmax {
  int64_t width = 0;
  float scale = 1;     ///< positive
  float* x = nullptr;  ///< finite values
};

struct Kernels {
  const char* name;
  void (*norm)(const Norm&, int64_t first, int64_t last);
  void (*norm_gradient)(const NormGradient&, int64_t first, int64_t last);
  void (*glu)(const Glu&, int64_t first, int64_t last);
  void (*glu_gradient)(const GluGradient&, int64_t first, int64_t last);
  void (*relu_gradient)(const ReluGradient&, int64_t first, int64_t last);
  void (*rotate)(const Rotation&, int64_t first, int64_t last);
  void (*cross_entropy)(const CrossEntropy&, int64_t first, int64_t last);
  void (*add)(const ColumnSums&, int64_t first, int64_t last);
  void (*project)(const Projection&, int64_t first, int64_t last);
  void (*softmax)(const Softmax&, int64_t first, int64_t last);
};

extern const Kernels kAvx512, kAvx2;

/// The kernels of an instruction set; null for portable, which uses LibTorch's operations.
inline const Kernels* kernels_of(Isa isa) {
  return choose_kernels(isa, kAvx512, kAvx512, kAvx512, kAvx512, kAvx2);
}

}  // namespace prism::rows
