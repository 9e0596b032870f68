#include "prism/sparse/auto_selector.h"

#include <utility>

#include "prism/core/error.h"

namespace prism {
namespace {

using CostOf = std::function<PrefillCost(const PrefillShape&)>;

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
    check_readable(input);
    const auto cost = cost_({input.q_BTHD.scalar_type(), input.q_BTHD.size(3), query_block, key_block});
    double tokens = 0, pooled = 0, pairs = 0, rows = 0;  // of all heads
    for (int64_t b = 0; b < input.q_BTHD.size(0); ++b) {
      const auto blocks = lengths.blocks(b, query_block, key_block);
      const auto queries = static_cast<double>(blocks.queries), first = static_cast<double>(blocks.first_query());
      tokens += queries * static_cast<double>(input.heads() + input.k_BGSD.size(1));
      rows += static_cast<double>(blocks.rows() * input.heads());
      pooled += static_cast<double>(blocks.visible_blocks() * input.heads());
      pairs += queries * (first + (queries + 1) / 2) * static_cast<double>(input.heads());
    }
    const BlockMask all{query_block, key_block, {}, {}, {}};
    if (cost.select_seconds(tokens, pooled) > options_.overhead * cost.dense_seconds(pairs)) return all;
    auto mask = spectral_->select(input, state);
    return cost.sparse_seconds(kept_pairs(lengths, mask), rows) < cost.dense_seconds(pairs) ? mask : all;
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
