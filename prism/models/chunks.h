// A prompt, chunk by chunk: activations of one chunk at a time, keys and values of all in the cache.
#pragma once

#include "prism/models/decoder.h"

namespace prism {

/// What decoder(tokens_BT, context) gives, computed `chunk` tokens at a time; the last chunk may be shorter.
/// @param context  with a cache unless chunk is 0; without positions, documents and lengths.
/// @param chunk    0: all tokens at once.
torch::Tensor forward_in_chunks(Decoder& decoder, const torch::Tensor& tokens_BT, ForwardContext context,
                                int64_t chunk);

}  // namespace prism
