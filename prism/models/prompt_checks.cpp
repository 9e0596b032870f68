#include "prism/models/prompt_checks.h"

#include "prism/core/error.h"

namespace prism {

void check_prefill(const ModelConfig& config, const PrefillOptions& options) {
  if (layers_with_budgets(config) == 0) return;
  PRISM_CHECK(options.selector == "dense", "budget",
              "expected dense attention for a model with head budgets; found the selector {}; leave it out.",
              options.selector);
  PRISM_CHECK(options.chunk == 0, "budget",
              "expected prompts in one piece for a model with head budgets, which read all of them; found chunks of {} "
              "tokens; leave out the chunks.",
              options.chunk);
}

Prefill* prefill_for(const ModelConfig& config, Prefill* prefill) {
  if (prefill == nullptr) return nullptr;
  check_prefill(config, prefill->options());
  return layers_with_budgets(config) > 0 ? nullptr : prefill;
}

}  // namespace prism
