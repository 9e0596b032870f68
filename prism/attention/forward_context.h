// Everything a forward pass takes besides its tokens.
#pragma once

#include "prism/attention/auxiliary.h"
#include "prism/attention/budget/budgets.h"
#include "prism/attention/kv_cache.h"
#include "prism/attention/probe.h"

namespace prism {

class Prefill;

// B batch, T positions of this call
struct ForwardContext {
  torch::Tensor positions_BT;       ///< int64; undefined: consecutive, after the cache's
  torch::Tensor word_opening_B;     ///< int64, tokens before a sequence's first row that belong to the word it may
                                    ///< continue; undefined: none. The cache tells for sequences that it has begun
  torch::Tensor word_positions_BT;  ///< int64, positions in words (word_positions.h); set by the trunk
  torch::Tensor documents_BT;       ///< int32 ids, non-decreasing; attention stays inside a document; undefined: one
  torch::Tensor lengths_B;          ///< int32, valid tokens of each row, the rest is padding; undefined: all
  torch::Tensor prompts_B;          ///< int32, tokens of each row that head budgets read; undefined: all of this call
  KvCache* cache = nullptr;         ///< earlier keys and values, extended by this call; null: none
  std::vector<SequenceRows> rows;   ///< which sequences of the cache the rows of the flattened batch belong to; empty:
                                    ///< row b of the batch is a prompt of sequence b
  Prefill* prefill = nullptr;       ///< computes the attention of prompts, possibly sparse; null: attend()
  int64_t first_position = 0;       ///< of all rows, without positions_BT; set by the trunk
  Auxiliary* auxiliary = nullptr;   ///< collects auxiliary loss terms; null: the model is not being trained
  Budgets* budgets = nullptr;       ///< for head budgets: schedules, noise, and what they decide; null: no noise
  double budget_tau = 0;            ///< temperature of head budgets if `budgets` is null; set by the trunk
  Probe* probe = nullptr;           ///< observes every layer; null: none
  AttentionBackend backend = AttentionBackend::automatic;

  /// Tokens at the start of the flattened batch that are decoded (ProductOptions).
  int64_t decoding_rows() const { return cache == nullptr ? 0 : cache->decoding_rows(); }
};

/// A copy of the context with its tensors on `device`.
ForwardContext on_device(const ForwardContext& context, const torch::Device& device);

/// Positions that restart at 0 in every document. @param documents_BT  int32, non-decreasing.
torch::Tensor positions_in_documents(const torch::Tensor& documents_BT);

}  // namespace prism
