// The one attention call: every model, analysis and benchmark goes through attend().
//
//   AttentionInput input{.q_BTHD = q, .kv = {.k_BGSD = k, .v_BGSE = v}};
//   AttentionOutput output = attend(input);                                  // out_BTHE, lse_BHT
//
// B batch, T query positions, S key positions, H query heads, G key/value heads, D head width, E value width
#pragma once

#include <torch/types.h>

#include <optional>

#include "prism/kernels/attention/block_mask.h"

namespace prism {

/// Keys and values, either contiguous or paged.
struct KeyValues {
  torch::Tensor k_BGSD;  ///< any strides with a dense last axis; pages: [P, G, page, D]
  torch::Tensor v_BGSE;  ///< [B, G, S, E], or pages [P, G, page, E]; strides as for k
  /// int32 [B, pages per sequence]: entry i is the page that holds positions [i page, (i+1) page). Entries after a
  /// sequence's last key may be anything. Undefined: not paged.
  torch::Tensor page_table_BN{};
  /// With int8 pages: float32 scales, at least 0, of the rows of k and v. A key or value is its int8 times the scale of
  /// its row.
  torch::Tensor k_scales_PGS{}, v_scales_PGS{};

  bool is_paged() const { return page_table_BN.defined(); }
  bool is_int8() const { return k_scales_PGS.defined() || v_scales_PGS.defined(); }
  /// S; with pages the positions for which the table has entries.
  int64_t positions() const { return is_paged() ? page_table_BN.size(1) * k_BGSD.size(2) : k_BGSD.size(2); }
};

enum class Causality {
  causal,  ///< aligned bottom-right: the last query sees every key, the query before it all but the last, ...
  full,
};

struct AttentionInput {
  torch::Tensor q_BTHD;  ///< any strides with a dense last axis, so a slice of fused QKV needs no copy
  KeyValues kv;
  torch::Tensor q_lengths_B;   ///< int32, sequence b has queries [0, length); undefined: all T
  torch::Tensor kv_lengths_B;  ///< int32, sequence b has keys [0, length); undefined: all S
  /// int32 document ids, non-decreasing along S (all positions of the table, with pages); a query sees only keys of its
  /// own document. Query t of a sequence has key position t + kv_length - q_length. Undefined: one document.
  torch::Tensor documents_BS;
  torch::Tensor kept_heads_BH;  ///< bool: which heads to compute, the others return zeros; undefined: all
  /// What each head's output is multiplied by: float32, float64 for float64 inputs; undefined: 1. flash and reference
  /// round the product once; torch rounds its factors, too.
  torch::Tensor head_weights_BH;
  BlockMask block_mask;  ///< which key blocks to compute; undefined: all
  /// Absolute position of the first query, which anchors the rows of the block mask. std::nullopt:
  /// max(0, kv_length - q_length).
  std::optional<int64_t> first_query;
  Causality causality = Causality::causal;
  int64_t window = 0;  ///< causal: a query sees its own key and the window - 1 keys before it; 0: all before it
  std::optional<double> scale;  ///< std::nullopt: 1 / sqrt(D)
  /// Whether these queries are decoded (their keys are streamed once, in chunks) or belong to a prompt (keys are packed
  /// first). Each way sums in its own order, which does not depend on other rows, so a caller that needs equal bits in
  /// any batch says which. std::nullopt: by the number of rows. Only flash knows the difference; with a block mask it
  /// takes the way of prompts.
  std::optional<bool> decodes;
  /// A tile of keys may be skipped if none of its weights reaches this share of the largest weight so far. Each skipped
  /// key changes out by at most 2 max|v| times this share. 0: no tile is skipped. Source: arXiv 2512.12087.
  double skip_share = 0;
};

struct AttentionOutput {
  torch::Tensor out_BTHE;  ///< q's dtype; zero where a query sees no key or its head is not kept
  /// float32 (float64 for float64 inputs): log-sum-exp of the scaled scores; -inf where a query sees no key or its head
  /// is not kept. Not differentiable.
  torch::Tensor lse_BHT;
};

enum class AttentionBackend {
  automatic,
  reference,  ///< explicit scores; the reference for tests
  flash,      ///< prism's CPU kernels (kernels/flash)
  torch,      ///< LibTorch's scaled_dot_product_attention
};

/// w softmax(scale q k^T + mask) v for every sequence and head, with w of head_weights_BH.
///
/// Head h reads key/value head floor(h G / H). Differentiable in q, k, v and w if they are float32, float64 or bfloat16
/// and not paged. A NaN in a query stays in its row of the output. A NaN in a value may reach rows that do not see it,
/// and any NaN may reach the gradients of other rows, because 0 NaN is NaN even where the weight is 0.
///
/// @throws InputError for inconsistent shapes or dtypes, paged keys or values that require gradients, or a backend that
///         does not support the input.
AttentionOutput attend(const AttentionInput& input, AttentionBackend backend = AttentionBackend::automatic);

/// The backend that `automatic` selects for this input.
AttentionBackend choose_backend(const AttentionInput& input);

/// "automatic", "reference", "flash" or "torch".
const char* backend_name(AttentionBackend backend);

/// Which keys each query may see: lengths, causality, documents and block mask combined. Paged input must be gathered
/// first (gather_pages()).
/// @return bool, broadcastable to [B, H, T, S]; undefined if every query sees every key.
torch::Tensor visible_keys(const AttentionInput& input);

/// Attention with explicit scores. @param probabilities_BHTS  if not null, receives the softmax, for analyses.
AttentionOutput attend_reference(const AttentionInput& input, torch::Tensor* probabilities_BHTS = nullptr);

/// prism's flash attention. Supports the inputs for which flash_backend_serves() returns true: bfloat16, float32 or
/// float16 (computed in float32) on a CPU with AVX2 or better, head widths that are multiples of 8 up to 512, a
/// positive scale, and no gradients through a block mask, skipped tiles or heads with weights. Pages are read in place
/// if they hold a multiple of 64 positions and no gradients are wanted, else gathered first.
AttentionOutput attend_flash(const AttentionInput& input);
bool flash_backend_serves(const AttentionInput& input);

/// LibTorch's SDPA. Supports the inputs for which torch_backend_serves() returns true.
AttentionOutput attend_torch(const AttentionInput& input);
bool torch_backend_serves(const AttentionInput& input);

/// Gathers the pages of a paged input into contiguous keys and values of q's dtype, with zeros after each sequence's
/// kv_length. Returns the keys and values of any other input unchanged.
KeyValues gather_pages(const AttentionInput& input);

/// The keys of gather_pages() alone, for a paged input.
torch::Tensor gather_keys(const AttentionInput& input);

}  // namespace prism
