#include "prism/attention/prefill.h"

#include "prism/core/error.h"
#include "prism/core/timer.h"

namespace prism {
namespace {

constexpr const char* kOperation = "prefill";

}  // namespace

HeadStatistics LayerPrefill::all_heads() const {
  return sum_of(heads);
}

Prefill::Prefill(const PrefillOptions& options)
    : options_(options), selector_(find_selector(options.selector, options.settings)) {
  PRISM_CHECK(options.chunk >= 0, kOperation, "chunk: expected at least 1, or 0 for no chunks; found {}; change it.",
              options.chunk);
  PRISM_CHECK(options.recall_rows >= 0, kOperation, "recall_rows: expected at least 0; found {}; raise it.",
              options.recall_rows);
}

AttentionOutput Prefill::attend(size_t layer, AttentionInput input, const RotaryPairs& pairs, KvCache* cache,
                                int64_t prompt_length, AttentionBackend backend) {
  const SelectorInput seen{.q_BTHD = input.q_BTHD,
                           .k_BGSD = input.kv.k_BGSD,
                           .q_lengths_B = input.q_lengths_B,
                           .kv_lengths_B = input.kv_lengths_B,
                           .pairs = pairs,
                           .scale = input.scale.value_or(0),
                           .prompt_length = prompt_length};
  PRISM_CHECK(!input.documents_BS.defined(), kOperation,
              "expected one document a row, because selectors know of no others; found document boundaries.");
  if (layer >= layers_.size()) layers_.resize(layer + 1);
  auto& record = layers_[layer];
  std::unique_ptr<SelectorState> of_call;
  auto& state = cache == nullptr ? of_call : cache->selector_state(layer);
  if (!state) state = selector_->make_state(seen);
  Timer timer;
  input.block_mask = selector_->select(seen, *state);
  record.select_seconds += timer.seconds();
  timer.restart();
  auto output = prism::attend(input, backend);
  record.attend_seconds += timer.seconds();
  timer.restart();
  const auto heads = measure_mask(seen, input.block_mask, options_.recall_rows);
  record.heads.resize(heads.size());
  for (size_t h = 0; h < heads.size(); ++h) record.heads[h] += heads[h];
  record.measure_seconds += timer.seconds();
  return output;
}

LayerPrefill all_layers(const std::vector<LayerPrefill>& layers) {
  LayerPrefill sum;
  sum.heads.resize(1);
  for (const auto& layer : layers) {
    sum.heads[0] += layer.all_heads();
    sum.select_seconds += layer.select_seconds;
    sum.attend_seconds += layer.attend_seconds;
    sum.measure_seconds += layer.measure_seconds;
  }
  return sum;
}

}  // namespace prism
