#include "prism/attention/prefill.h"

#include "prism/attention/prefill_meter.h"
#include "prism/core/error.h"
#include "prism/sparse/selectors.h"

namespace prism {
namespace {

torch::Tensor on_cpu(const torch::Tensor& tensor) {
  return tensor.is_cpu() ? tensor : tensor.to(torch::kCPU);
}

torch::Tensor contiguous_keys(const AttentionInput& input) {
  if (!input.kv.is_paged()) return input.kv.k_BGSD;
  return gather_keys(input).narrow(2, 0, input.kv_lengths_B.max().item<int64_t>());
}

}  // namespace

Prefill::Prefill(const PrefillOptions& options, const PrefillCosts& costs, PrefillMeter* meter)
    : options_(options), selector_(find_selector(options.selector, options.settings, costs)), meter_(meter) {
  PRISM_CHECK(options.chunk >= 0, "prefill",
              "expected chunks of at least 0 tokens, where 0 means no chunks; found {}; change it.", options.chunk);
}

AttentionOutput Prefill::attend(size_t layer, AttentionInput input, const RotaryPairs& pairs,
                                std::unique_ptr<SelectorState>& state, int64_t prompt_length,
                                AttentionBackend backend) {
  if (!selects() && meter_ == nullptr) return prism::attend(input, backend);
  // Selectors and their masks are on the CPU, wherever attention runs.
  const SelectorInput seen{.q_BTHD = on_cpu(input.q_BTHD),
                           .k_BGSD = on_cpu(contiguous_keys(input)),
                           .q_lengths_B = input.q_lengths_B,
                           .kv_lengths_B = input.kv_lengths_B,
                           .pairs = pairs,
                           .scale = input.scale.value_or(0),
                           .prompt_length = prompt_length};
  PRISM_CHECK(!input.documents_BS.defined(), "prefill",
              "expected one document per row, since selectors do not support several; found document boundaries; use "
              "dense attention.");
  if (!state) state = selector_->make_state(seen);
  if (meter_ != nullptr) meter_->before_select();
  input.block_mask = selector_->select(seen, *state);
  if (meter_ != nullptr) meter_->before_attend(layer);
  auto output = prism::attend(input, backend);
  if (meter_ != nullptr) meter_->after_attend(layer, seen, input.block_mask);
  return output;
}

}  // namespace prism
