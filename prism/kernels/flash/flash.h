// Flash attention on raw memory, without torch: what each instruction set offers, and what it is asked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "prism/kernels/simd/isa.h"
#include "prism/kernels/simd/type.h"

namespace prism::flash {

using simd::Type;

/// Rows of a [batch, head, row, width] tensor; strides in elements, the last axis dense.
struct Matrix {
  void* data = nullptr;
  int64_t batch_stride = 0, head_stride = 0, row_stride = 0;
};

/// The widest keys and values.
constexpr int64_t kMostWidth = 512;
/// Rows of the longest task: enough to use what is read of keys and values, few enough to share out.
constexpr int64_t kTaskRows = 128;

/// Query rows [first, end) of one head, in one block of queries: what one thread does at a time.
struct Task {
  int64_t batch, head, first, end;
};

/// The key blocks that each block of queries keeps (block_mask.h): of what a query sees, the rest is left out.
struct KeptBlocks {
  const int32_t* counts_BHM = nullptr;  ///< null: every block is kept
  const int32_t* indices_BHMN = nullptr;
  int64_t rows = 0, width = 0;             ///< M, N
  int64_t query_block = 1, key_block = 1;  ///< tokens
  const int32_t* first_query_B = nullptr;  ///< absolute position of each sequence's first query

  bool defined() const { return counts_BHM != nullptr; }
  /// The row of blocks that query t of a sequence stands in.
  int64_t row_of(int64_t batch, int64_t t) const {
    const int64_t first = first_query_B[batch];
    return (first + t) / query_block - first / query_block;
  }
};

// B batch, T queries, S keys, H heads, G key/value heads, D key width, E value width
struct Problem {
  Type type = Type::float32;  ///< of all matrices; products of bfloat16 lose what gemm::Problem says of tiny values
  int64_t batch = 0, queries = 0, keys = 0, heads = 0, kv_heads = 0, key_dim = 0, value_dim = 0;
  float scale = 1;                        ///< above 0
  const int32_t* first_key_BT = nullptr;  ///< a query sees the keys [first, end); none where end <= first
  const int32_t* end_key_BT = nullptr;
  const bool* kept_heads_BH = nullptr;  ///< null: all; the others give zeros
  KeptBlocks blocks;                    ///< of the forward pass alone
  int threads = 1;
};

struct Forward : Problem {
  explicit Forward(const Problem& problem) : Problem(problem) {}

  Matrix q, k, v, out;  ///< rows of D, D, E, E
  /// A tile whose scores, before scaling, are all lower than the largest so far by more than this is left out; -inf:
  /// none.
  float skip_below = -std::numeric_limits<float>::infinity();
  float* lse_BHT = nullptr;      ///< log sum exp of scaled scores; -inf where nothing is seen
  std::byte* scratch = nullptr;  ///< forward_scratch() bytes from a 64-byte boundary
  const Task* tasks = nullptr;   ///< plan()
  int64_t task_count = 0;
};

struct Backward : Problem {
  explicit Backward(const Problem& problem) : Problem(problem) {}

  Matrix q, k, v, out, d_out;      ///< as in the forward pass; the gradient of out
  Matrix dq, dk, dv;               ///< written
  const float* lse_BHT = nullptr;  ///< of the forward pass
  std::byte* scratch = nullptr;    ///< backward_scratch() bytes from a 64-byte boundary
};

/// The functions of one instruction set. Results depend on the shape and the values alone, not on the threads.
struct Kernels {
  const char* name;
  size_t (*forward_scratch)(const Problem&);
  void (*forward)(const Forward&);
  size_t (*backward_scratch)(const Problem&);
  void (*backward)(const Backward&);
};

/// Blocks of query rows of all heads, those with most keys first, so that no thread begins a long one last.
std::vector<Task> plan(const Problem& problem);

extern const Kernels kAmxBf16, kAvx512Bf16, kAvx512, kAvx2;

/// The kernels of an instruction set; null for portable, which has LibTorch's.
inline const Kernels* kernels_of(Isa isa) {
  return choose_kernels(isa, kAmxBf16, kAvx512Bf16, kAvx512, kAvx2);
}

}  // namespace prism::flash
