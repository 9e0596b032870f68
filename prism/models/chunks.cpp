#include "prism/models/chunks.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <vector>

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

torch::Tensor forward_in_chunks(Decoder& decoder, const torch::Tensor& tokens_BT, ForwardContext context,
                                int64_t chunk) {
  const int64_t tokens = tokens_BT.size(1);
  if (chunk == 0 || chunk >= tokens) return decoder(tokens_BT, context);
  PRISM_ASSERT(chunk > 0 && context.cache != nullptr && !context.positions_BT.defined() &&
                   !context.documents_BT.defined() && !context.lengths_B.defined(),
               "chunks", "chunks of {} tokens without a cache, or with positions, documents or lengths", chunk);
  if (context.rows.empty())
    for (int64_t b = 0; b < tokens_BT.size(0); ++b) context.rows.push_back({.sequence = b});
  for (auto& each : context.rows) each.prompt_length = context.cache->length(each.sequence) + tokens;
  std::vector<torch::Tensor> hidden;
  for (int64_t first = 0; first < tokens; first += chunk) {
    const int64_t count = std::min(chunk, tokens - first);
    for (auto& each : context.rows) each.tokens = count;
    hidden.push_back(decoder(tokens_BT.narrow(1, first, count), context));
  }
  return at::cat(hidden, 1);
}

}  // namespace prism
