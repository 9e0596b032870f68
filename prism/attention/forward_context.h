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
  torch::Tensor word_opening_B;     ///< int64, tokens before a row's first that belong to the word it may continue;
                                    ///< undefined: none. With a cache that is not empty the cache tells
  torch::Tensor word_positions_BT;  ///< int64, positions in words (word_positions.h); set by the trunk
  torch::Tensor documents_BT;       ///< int32 ids, non-decreasing; attention stays inside a document; undefined: one
  torch::Tensor lengths_B;          ///< int32, valid tokens of each row, the rest is padding; undefined: all
  torch::Tensor prompts_B;          ///< int32, tokens of each row that head budgets read; undefined: all of this call
  KvCache* cache = nullptr;         ///< earlier keys and values, extended by this call; null: none
  Prefill* prefill = nullptr;       ///< computes a prompt's attention, possibly sparse; null (as in decoding): attend()
  int64_t decoding_rows = 0;        ///< tokens at the start of the flattened batch that are decoded (ProductOptions)
  int64_t prompt_length = 0;        ///< length of the prompt that this call is a chunk of; 0: it ends with this call
  Auxiliary* auxiliary = nullptr;   ///< collects auxiliary loss terms; null: the model is not being trained
  Budgets* budgets = nullptr;       ///< for head budgets: schedules, noise, and what they decide; null: no noise
  double budget_tau = 0;            ///< temperature of head budgets if `budgets` is null; set by the trunk
  Probe* probe = nullptr;           ///< observes every layer; null: none
  AttentionBackend backend = AttentionBackend::automatic;
};

/// A copy of the context with its tensors on `device`.
ForwardContext on_device(const ForwardContext& context, const torch::Device& device);

/// Positions that restart at 0 in every document. @param documents_BT  int32, non-decreasing.
torch::Tensor positions_in_documents(const torch::Tensor& documents_BT);

}  // namespace prism
