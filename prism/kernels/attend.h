// The one attention call: every model, analysis and benchmark goes through attend().
//
//   AttentionInput input{.q_BTHD = q, .kv = {.k_BGSD = k, .v_BGSE = v}};
//   AttentionOutput output = attend(input);                                  // out_BTHE, lse_BHT
//
// B batch, T query positions, S key positions, H query heads, G key/value heads, D head width, E value width
#pragma once

#include <torch/types.h>

#include <optional>

#include "prism/kernels/block_mask.h"

namespace prism {

/// Keys and values: either whole, or in pages with a table.
struct KeyValues {
  torch::Tensor k_BGSD;  ///< any strides with a dense last axis; pages: [P, G, page, D]
  torch::Tensor v_BGSE;  ///< likewise, [B, G, S, E] or [P, G, page, E]
  /// int32 [B, pages per sequence]: the page that holds positions [i page, (i+1) page). Undefined: not paged.
  torch::Tensor page_table_BN;
};

enum class Causality {
  causal,  ///< bottom-right: the last query sees every key, the one before it all but the last, ...
  full,
};

struct AttentionInput {
  torch::Tensor q_BTHD;  ///< any strides with a dense last axis, so a slice of fused QKV needs no copy
  KeyValues kv;
  torch::Tensor q_lengths_B;   ///< int32, sequence b has queries [0, length); undefined: all T
  torch::Tensor kv_lengths_B;  ///< int32, likewise for keys; undefined: all S
  /// int32, never falling along S: a query sees only keys of its own document. The query t of a sequence stands at key
  /// position t + kv_length - q_length. Undefined: one document.
  torch::Tensor documents_BS;
  torch::Tensor kept_heads_BH;  ///< bool: heads that are computed, the others give zeros; undefined: all
  BlockMask block_mask;         ///< key blocks that are computed; undefined: all
  /// Absolute position of the first query, to which the block mask's rows are anchored; absent: kv_length - q_length,
  /// or 0 if that is negative.
  std::optional<int64_t> first_query;
  Causality causality = Causality::causal;
  std::optional<double> scale;  ///< absent: 1 / sqrt(D)
  /// Keys and values of a tile may be left out where no weight in it reaches this share of the largest weight so far:
  /// out then differs by at most 2 max|v| of that share a key left out. 0: none are. Source: arXiv 2512.12087.
  double skip_share = 0;
};

struct AttentionOutput {
  torch::Tensor out_BTHE;  ///< q's dtype; zero where a query sees no key, or its head is not kept
  /// float32 (float64 for float64 inputs): log sum exp of the scaled scores; -inf where no key is seen, or the head is
  /// not kept. No gradient flows through it.
  torch::Tensor lse_BHT;
};

enum class AttentionBackend {
  automatic,
  reference,  ///< explicit scores; the oracle
  flash,      ///< prism's own kernels for the CPU (kernels/flash)
  torch,      ///< LibTorch's scaled_dot_product_attention
};

/// softmax(scale q k^T + mask) v for every sequence and head.
///
/// Head h reads key/value head floor(h G / H). Gradients flow to q, k and v where these are float32, float64 or
/// bfloat16 and not paged. A NaN in a query stays in its row of the output; a NaN in a value may reach rows that do not
/// see it, and any NaN the gradients of others: weights there are 0, and 0 NaN is NaN.
///
/// @throws InputError for shapes or dtypes that contradict each other, paged keys or values that need gradients, or a
///         backend that cannot serve the input.
AttentionOutput attend(const AttentionInput& input, AttentionBackend backend = AttentionBackend::automatic);

/// The backend that `automatic` stands for.
AttentionBackend choose_backend(const AttentionInput& input);

/// "automatic", "reference", "flash" or "torch".
const char* backend_name(AttentionBackend backend);

/// Attention over all keys from attention over two disjoint sets of them:
///
///   lse = log(e^lse_a + e^lse_b),  out = e^(lse_a - lse) out_a + e^(lse_b - lse) out_b
///
/// Zeros and -inf where neither saw a key. Computed in lse's dtype, without gradients.
/// @throws InputError for outputs of different shapes or dtypes.
AttentionOutput merge_attention(const AttentionOutput& a, const AttentionOutput& b);

/// Which keys a query may see: lengths, causality, documents and block mask in one. Not for paged input (gather_pages).
/// @return bool, broadcastable to [B, H, T, S]; undefined if every query sees every key.
torch::Tensor visible_keys(const AttentionInput& input);

/// The explicit path. @param probabilities_BHTS  if not null, receives the softmax, for analyses.
AttentionOutput attend_reference(const AttentionInput& input, torch::Tensor* probabilities_BHTS = nullptr);

/// prism's flash attention. Serves inputs for which flash_backend_serves(): bfloat16, float32 or float16 (which is
/// computed in float32) on a CPU with AVX2 or better, widths in steps of 8 up to 512, a positive scale, no gradients
/// through a block mask or tiles left out.
AttentionOutput attend_flash(const AttentionInput& input);
bool flash_backend_serves(const AttentionInput& input);

/// LibTorch's SDPA on the CPU. Serves inputs for which torch_backend_serves().
AttentionOutput attend_torch(const AttentionInput& input);
bool torch_backend_serves(const AttentionInput& input);

/// The keys and values of a paged input, gathered whole, with zeros behind each sequence's kv_length; those of other
/// inputs as they are.
KeyValues gather_pages(const AttentionInput& input);

}  // namespace prism
