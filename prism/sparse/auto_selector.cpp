#include "prism/sparse/auto_selector.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "prism/core/error.h"

namespace prism {
namespace {

using CostOf = std::function<PrefillCost(const PrefillShape&)>;

/// The chosen blocks with all visible ones in their place for heads that are faster dense. @return how many heads are.
int64_t make_slow_heads_dense(const SelectorLengths& lengths, const PrefillCost& cost, BlockMask& mask) {
  const int64_t batch = mask.counts_BHM.size(0), heads = mask.counts_BHM.size(1), rows = mask.counts_BHM.size(2);
  const auto block_pairs = static_cast<double>(mask.query_block_size * mask.key_block_size);
  std::vector<std::vector<int32_t>> kept(static_cast<size_t>(batch * heads * rows));
  const auto* counts = mask.counts_BHM.const_data_ptr<int32_t>();
  const auto* indices = mask.indices_BHMN.const_data_ptr<int32_t>();
  int64_t dense = 0;
  for (int64_t i = 0; i < batch * heads; ++i) {
    const auto blocks = lengths.blocks(i / heads, mask.query_block_size, mask.key_block_size);
    double sum = 0;
    for (int64_t m = 0; m < rows; ++m) sum += counts[i * rows + m];
    const double visible = static_cast<double>(blocks.visible_blocks());
    const bool is_slow = cost.sparse_seconds(sum * block_pairs, static_cast<double>(blocks.rows())) >=
                         cost.dense_seconds(visible * block_pairs);
    dense += is_slow;
    for (int64_t m = 0; m < blocks.rows(); ++m) {
      auto& row = kept[static_cast<size_t>(i * rows + m)];
      if (is_slow) {
        for (int64_t v = 0; v < blocks.visible(m); ++v) row.push_back(static_cast<int32_t>(v));
      } else {
        const auto* first = indices + (i * rows + m) * mask.indices_BHMN.size(3);
        row.assign(first, first + counts[i * rows + m]);
      }
    }
  }
  if (dense > 0) mask = make_block_mask(kept, batch, heads, mask.query_block_size, mask.key_block_size);
  return dense;
}

class AutoSelector : public Selector {
 public:
  AutoSelector(const AutoOptions& options, CostOf cost)
      : options_(options), cost_(std::move(cost)), spectral_(make_spectral_selector(options.spectral)) {
    PRISM_CHECK(options.overhead > 0 && options.overhead <= 1, "auto",
                "overhead: expected a share within (0, 1]; found {}; change it.", options.overhead);
  }

  std::unique_ptr<SelectorState> make_state(const SelectorInput& input) const override {
    return spectral_->make_state(input);
  }

  BlockMask select(const SelectorInput& input, SelectorState& state) const override {
    const int64_t query_block = options_.spectral.blocks.queries(), key_block = options_.spectral.blocks.keys();
    const SelectorLengths lengths(input);
    const auto cost = cost_({input.q_BTHD.scalar_type(), input.q_BTHD.size(3), query_block, key_block});
    double tokens = 0, pooled = 0, pairs = 0;
    for (int64_t b = 0; b < input.q_BTHD.size(0); ++b) {
      const auto blocks = lengths.blocks(b, query_block, key_block);
      const auto queries = static_cast<double>(blocks.queries), first = static_cast<double>(blocks.first_query());
      tokens += queries * static_cast<double>(input.heads() + input.k_BGSD.size(1));
      pooled += static_cast<double>(blocks.visible_blocks() * input.heads());
      pairs += queries * (first + (queries + 1) / 2) * static_cast<double>(input.heads());
    }
    const BlockMask all{query_block, key_block, {}, {}, {}};
    if (cost.select_seconds(tokens, pooled) > options_.overhead * cost.dense_seconds(pairs)) return all;
    auto mask = spectral_->select(input, state);
    const int64_t heads = input.q_BTHD.size(0) * input.heads();
    return make_slow_heads_dense(lengths, cost, mask) == heads ? all : mask;
  }

 private:
  AutoOptions options_;
  CostOf cost_;
  std::unique_ptr<Selector> spectral_;
};

}  // namespace

std::unique_ptr<Selector> make_auto_selector(const AutoOptions& options, CostOf cost) {
  return std::make_unique<AutoSelector>(options, std::move(cost));
}

}  // namespace prism
