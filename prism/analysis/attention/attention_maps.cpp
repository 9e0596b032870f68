#include "prism/analysis/attention/attention_maps.h"

#include <ATen/Functions.h>

#include "prism/analysis/attention/attention_rows.h"
#include "prism/core/error.h"

namespace prism {

void AttentionMapProbe::observe_attention(size_t layer, const AttentionInput& input) {
  const int64_t heads = input.q_BTHD.size(2), keys = input.kv.k_BGSD.size(2);
  const auto chosen = choose_(layer, heads);
  if (chosen.empty()) return;
  PRISM_ASSERT(input.q_BTHD.size(0) == 1, "maps", "a batch of {} sequences", input.q_BTHD.size(0));
  const auto weights_HTS = torch::zeros({heads, keys, keys}, torch::kDouble);
  for (const auto& span : query_spans(input, QueryRange::all, "maps"))
    stream_attention(input, span, [&](const AttentionRows& rows) {
      const auto& found = rows.weights_RTS;
      weights_HTS.narrow(0, rows.first_head, found.size(0))
          .narrow(1, rows.first_position, found.size(1))
          .narrow(2, 0, found.size(2))
          .copy_(found);
    });
  const bool is_causal = input.causality == Causality::causal;
  for (const int64_t head : chosen)
    maps_.push_back({static_cast<int64_t>(layer), head, weights_HTS[head].contiguous(), is_causal});
}

std::vector<std::vector<double>> rows_of(const AttentionMap& map) {
  std::vector<std::vector<double>> rows;
  const auto* weights = map.weights_TS.const_data_ptr<double>();
  const int64_t count = map.weights_TS.size(0);
  for (int64_t t = 0; t < count; ++t) {
    const double* row = weights + t * count;
    rows.emplace_back(row, row + (map.is_causal ? t + 1 : count));
  }
  return rows;
}

}  // namespace prism
