// How prompts may be read: through a selector or in chunks, but not by models with head budgets.
//
//   check_prefill(decoder->config(), options);
#pragma once

#include "prism/attention/prefill.h"
#include "prism/models/model_config.h"

namespace prism {

/// Checks that a model can read prompts so. @throws InputError for a selector, or chunks, with head budgets.
void check_prefill(const ModelConfig& config, const PrefillOptions& options);

/// The prefill for a forward pass, after check_prefill(): null for a model with head budgets, whose layers compute the
/// kept heads alone, by dense attention. @param prefill  may be null.
Prefill* prefill_for(const ModelConfig& config, Prefill* prefill);

}  // namespace prism
