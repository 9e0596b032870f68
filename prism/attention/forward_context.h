// What a forward pass knows besides its tokens.
#pragma once

#include "prism/attention/attention_probe.h"
#include "prism/attention/kv_cache.h"
#include "prism/attention/prefill.h"

namespace prism {

// B batch, T positions of this call
struct ForwardContext {
  torch::Tensor positions_BT;  ///< int64; undefined: consecutive, after the cache's
  torch::Tensor documents_BT;  ///< int32, never falling: attention stays inside a document; undefined: one document
  torch::Tensor lengths_B;     ///< int32, valid tokens of each row, the rest is padding; undefined: all
  KvCache* cache = nullptr;    ///< the past, extended by this call; null: none
  Prefill* prefill = nullptr;  ///< computes the attention of prompts, sparse perhaps; null: attend(), all of it
  bool ends_prompt = true;     ///< no chunk of the prompt follows this call
  AttentionProbe* probe = nullptr;  ///< looks at every layer's attention; null: none
  AttentionBackend backend = AttentionBackend::automatic;
};

/// The same with its tensors on a device.
ForwardContext on_device(const ForwardContext& context, const torch::Device& device);

/// Positions that start again at 0 in every document. @param documents_BT  int32, never falling.
torch::Tensor positions_in_documents(const torch::Tensor& documents_BT);

}  // namespace prism
