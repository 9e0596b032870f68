// Flash attention on raw memory, without torch: the problem, and the functions of each instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "prism/kernels/simd/isa.h"
#include "prism/kernels/simd/type.h"

namespace prism::flash {

using simd::Type;

/// A [batch, head, row, width] tensor with strides in elements and a dense last axis.
struct Matrix {
  void* data = nullptr;
  int64_t batch_stride = 0, head_stride = 0, row_stride = 0;
};

/// Keys and values in pages: row r of sequence b is row r % rows of page table[b][r / rows]. Entries of the table that
/// hold no row of a sequence may be anything.
struct Pages {
  const int32_t* table_BN = nullptr;  ///< null: whole sequences
  int64_t width = 0;                  ///< N
  int64_t rows = 0;                   ///< of a page, a multiple of kPageRows

  bool defined() const { return table_BN != nullptr; }
};
/// Panels of keys, and steps of values, never cross from one page to the next.
constexpr int64_t kPageRows = 64;

/// The widest keys and values.
constexpr int64_t kMostWidth = 512;
/// Most rows of a task: enough to reuse the keys and values it reads, few enough to balance the threads.
constexpr int64_t kTaskRows = 128;

/// The unit of work of a thread: query rows [first, end) of one head, all in one block of queries.
struct Task {
  int64_t batch, head, first, end;
};

/// The key blocks that each block of queries keeps (block_mask.h). Visible keys in other blocks are skipped.
struct KeptBlocks {
  const int32_t* counts_BHM = nullptr;  ///< null: every block is kept
  const int32_t* indices_BHMN = nullptr;
  int64_t rows = 0, width = 0;             ///< M, N
  int64_t query_block = 1, key_block = 1;  ///< tokens
  const int32_t* first_query_B = nullptr;  ///< absolute position of each sequence's first query

  bool defined() const { return counts_BHM != nullptr; }
  /// The row of blocks of query t of a sequence.
  int64_t row_of(int64_t batch, int64_t t) const {
    const int64_t first = first_query_B[batch];
    return (first + t) / query_block - first / query_block;
  }
};

// B batch, T queries, S keys, H heads, G key/value heads, D key width, E value width
struct Problem {
  Type type = Type::float32;  ///< of all matrices; bfloat16 products lose tiny values as gemm::Problem says
  int64_t batch = 0, queries = 0, keys = 0, heads = 0, kv_heads = 0, key_dim = 0, value_dim = 0;
  float scale = 1;                        ///< above 0
  const int32_t* first_key_BT = nullptr;  ///< a query sees the keys [first, end); none if end <= first
  const int32_t* end_key_BT = nullptr;
  const bool* kept_heads_BH = nullptr;  ///< null: all; other heads return zeros
  KeptBlocks blocks;                    ///< only in the forward pass
  /// Whether the forward pass streams the keys once, in chunks (decode.h), or packs them first (forward.h). Each way
  /// sums in its own order, which depends on no other row. std::nullopt: by the number of rows. With blocks, keys are
  /// always packed.
  std::optional<bool> decodes;
  int threads = 1;
};

struct Forward : Problem {
  explicit Forward(const Problem& problem) : Problem(problem) {}

  Matrix q, k, v, out;  ///< rows of D, D, E, E
  Pages pages;          ///< of k and v, whose batch_stride is then from page to page
  /// If given, k and v are pages of int8, and the values of a row are its int8 times the
  /// row's scale, a float32 of at least 0. row_stride 1.
  Matrix k_scales, v_scales;
  const float* weights_BH = nullptr;   ///< what a head's output is multiplied by; null: 1
  const int32_t* lengths_B = nullptr;  ///< sequence b has the keys [0, length), no others are read; null: all keys
  /// A tile is skipped if each of its unscaled scores is below its row's largest score so far plus this (negative)
  /// difference. -inf: no tile is skipped.
  float skip_below = -std::numeric_limits<float>::infinity();
  float* lse_BHT = nullptr;      ///< log-sum-exp of the scaled scores; -inf where no key is seen
  std::byte* scratch = nullptr;  ///< forward_scratch() bytes, aligned to 64 bytes
  const Task* tasks = nullptr;   ///< from plan(); null if there are none
  int64_t task_count = 0;

  bool is_int8() const { return k_scales.data != nullptr; }
};

struct Backward : Problem {
  explicit Backward(const Problem& problem) : Problem(problem) {}

  Matrix q, k, v, out, d_out;      ///< as in the forward pass; d_out is the gradient of out
  Matrix dq, dk, dv;               ///< outputs
  const float* lse_BHT = nullptr;  ///< from the forward pass
  std::byte* scratch = nullptr;    ///< backward_scratch() bytes, aligned to 64 bytes
};

/// The functions of one instruction set. Results depend only on the shape and the values, not on the number of threads.
struct Kernels {
  const char* name;
  size_t (*forward_scratch)(const Problem&);
  void (*forward)(const Forward&);
  size_t (*backward_scratch)(const Problem&);
  void (*backward)(const Backward&);
};

/// Returns true if the forward pass streams the keys (Problem::decodes). Unless the problem says so: for few queries
/// and few rows per key/value head (the queries of all its heads); with more rows packing pays off.
bool decodes(const Problem& problem);

/// The tasks of all heads, those with the most keys first, so that no thread starts a long task last. None if the
/// forward pass streams the keys.
std::vector<Task> plan(const Problem& problem);

extern const Kernels kAmxBf16, kAvx512Bf16, kAvx512Vnni, kAvx512, kAvx2;

/// The kernels of an instruction set; null for portable, which uses LibTorch.
inline const Kernels* kernels_of(Isa isa) {
  return choose_kernels(isa, kAmxBf16, kAvx512Bf16, kAvx512Vnni, kAvx512, kAvx2);
}

}  // namespace prism::flash
