// What a forward pass knows besides its tokens.
#pragma once

#include "prism/attention/auxiliary.h"
#include "prism/attention/kv_cache.h"
#include "prism/attention/probe.h"

namespace prism {

class Prefill;

// B batch, T positions of this call
struct ForwardContext {
  torch::Tensor positions_BT;      ///< int64; undefined: consecutive, after the cache's
  torch::Tensor documents_BT;      ///< int32, never falling: attention stays inside a document; undefined: one document
  torch::Tensor lengths_B;         ///< int32, valid tokens of each row, the rest is padding; undefined: all
  KvCache* cache = nullptr;        ///< the past, extended by this call; null: none
  Prefill* prefill = nullptr;      ///< computes a prompt's attention, sparse perhaps; null, as in decoding: attend()
  int64_t prompt_length = 0;       ///< positions of the prompt that this call is a chunk of; 0: it ends with this call
  Auxiliary* auxiliary = nullptr;  ///< what layers add to the loss; null: the model is not being trained
  Probe* probe = nullptr;          ///< looks at what every layer has; null: none
  AttentionBackend backend = AttentionBackend::automatic;
};

/// The same with its tensors on a device.
ForwardContext on_device(const ForwardContext& context, const torch::Device& device);

/// Positions that start again at 0 in every document. @param documents_BT  int32, never falling.
torch::Tensor positions_in_documents(const torch::Tensor& documents_BT);

}  // namespace prism
