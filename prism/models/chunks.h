// Runs a prompt through a model in chunks. Only one chunk's activations are in memory; the cache holds all keys and
// values.
#pragma once

#include "prism/attention/prefill.h"
#include "prism/models/decoder.h"

namespace prism {

/// Checks that a model can read prompts so. @throws InputError for a selector, or chunks, with head budgets.
void check_prefill(const ModelConfig& config, const PrefillOptions& options);

/// The prefill for a forward pass, after check_prefill(): null for a model with head budgets, whose layers compute the
/// kept heads alone, by dense attention. @param prefill  may be null.
Prefill* prefill_for(const ModelConfig& config, Prefill* prefill);

/// Same result as decoder(tokens_BT, context), computed `chunk` tokens at a time. The last chunk may be shorter.
/// @param context  unless chunk is 0, must have a cache and no positions, documents or lengths. Its `rows` name the
///                 sequences that the rows of the batch belong to, if they are not the first ones.
/// @param chunk    tokens; 0: all at once.
torch::Tensor forward_in_chunks(Decoder& decoder, const torch::Tensor& tokens_BT, ForwardContext context,
                                int64_t chunk);

}  // namespace prism
