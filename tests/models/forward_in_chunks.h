// Reads a prompt in chunks, as the engine does for one sequence.
#pragma once

#include <ATen/Functions.h>

#include <algorithm>
#include <vector>

#include "prism/models/decoder.h"

namespace prism {

/// Same result as decoder(tokens_BT, context), computed `chunk` tokens at a time. The last chunk may be shorter.
/// @param context  unless chunk is 0, must have a cache and no positions, documents or lengths.
/// @param chunk    tokens; 0: all at once.
inline torch::Tensor forward_in_chunks(Decoder& decoder, const torch::Tensor& tokens_BT, ForwardContext context,
                                       int64_t chunk) {
  const int64_t tokens = tokens_BT.size(1);
  if (chunk == 0 || chunk >= tokens) return decoder(tokens_BT, context);
  for (int64_t b = 0; b < tokens_BT.size(0); ++b)
    context.rows.push_back({.sequence = b, .prompt_length = context.cache->length(b) + tokens});
  std::vector<torch::Tensor> hidden;
  for (int64_t first = 0; first < tokens; first += chunk) {
    const int64_t count = std::min(chunk, tokens - first);
    for (auto& each : context.rows) each.tokens = count;
    hidden.push_back(decoder(tokens_BT.narrow(1, first, count), context));
  }
  return at::cat(hidden, 1);
}

}  // namespace prism
