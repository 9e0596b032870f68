#include "prism/sparse/methods/flash_prefill.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <limits>

#include "prism/core/error.h"
#include "prism/sparse/forced_blocks.h"
#include "prism/sparse/head_by_head.h"
#include "prism/sparse/option_checks.h"

namespace prism {
namespace {

class FlashPrefillSelector : public HeadByHeadSelector {
 public:
  explicit FlashPrefillSelector(const FlashPrefillOptions& options)
      : HeadByHeadSelector(options.blocks), options_(options) {
    PRISM_CHECK(options.alpha >= 0 && options.alpha <= 1, "flash_prefill",
                "alpha: expected a share within 0-1; found {}; change it.", options.alpha);
    for (const auto& [name, count] :
         {std::pair{"sink", options.sink}, {"window", options.window}, {"last_dense", options.last_dense}})
      check_count("flash_prefill", name, count);
  }

 protected:
  torch::Tensor select_head(const HeadInput& head) const override {
    const auto means_ND = block_means(head.k_SD, head.key_block);
    const auto last_N = at::minimum((at::arange(head.blocks()) + 1) * head.key_block, at::full({}, head.keys)) - 1;
    auto kept_MN = at::zeros({head.rows(), head.blocks()}, torch::kByte);
    for (int64_t row = 0; row < head.rows(); ++row) {
      const int64_t first = head.first_position(row), end = head.end_position(row);
      auto kept_N = kept_MN[row];
      const std::span<uint8_t> forced(kept_N.mutable_data_ptr<uint8_t>(), static_cast<size_t>(head.blocks()));
      keep_first(forced, options_.sink);
      keep_last(forced, head.own_block(row), options_.window);
      if (head.first_row() + row >= first_dense_row(head.prompt_rows, options_.last_dense)) kept_N.fill_(1);
      const auto scores_TN =
          at::mm(head.q_TD.narrow(0, first - head.first_query(), end - first), means_ND.t()).mul_(head.scale);
      const auto position_T = at::arange(first, end);
      scores_TN.masked_fill_(last_N.unsqueeze(0) > position_T.unsqueeze(1), -std::numeric_limits<float>::infinity());
      const double largest = scores_TN.max().item<double>();
      if (std::isinf(largest)) continue;  // no query of the row sees a whole block
      const auto weights_N = (scores_TN - largest).exp().sum(0);
      kept_N.logical_or_(weights_N.ge(options_.alpha * weights_N.max().item<double>()).logical_and(weights_N > 0));
    }
    return kept_MN;
  }

 private:
  FlashPrefillOptions options_;
};

}  // namespace

std::unique_ptr<Selector> make_flash_prefill_selector(const FlashPrefillOptions& options) {
  return std::make_unique<FlashPrefillSelector>(options);
}

}  // namespace prism
