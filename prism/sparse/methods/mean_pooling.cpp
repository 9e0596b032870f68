#include "prism/sparse/methods/mean_pooling.h"

#include <ATen/Functions.h>

#include "prism/sparse/forced_blocks.h"
#include "prism/sparse/head_by_head.h"
#include "prism/sparse/option_checks.h"
#include "prism/sparse/top_p.h"

namespace prism {
namespace {

class MeanPoolingSelector : public HeadByHeadSelector {
 public:
  explicit MeanPoolingSelector(const MeanPoolingOptions& options)
      : HeadByHeadSelector(options.blocks), options_(options) {}

 protected:
  torch::Tensor select_head(const HeadInput& head) const override {
    const auto queries_MD = block_means(head.q_TD, head.query_block, head.first_query());
    const auto scores_MN = at::mm(queries_MD, block_means(head.k_SD, head.key_block).t()).mul_(head.scale);
    auto kept_MN = at::zeros({head.rows(), head.blocks()}, torch::kByte);
    for (int64_t row = 0; row < head.rows(); ++row) {
      const int64_t visible = head.visible(row);
      const std::span<uint8_t> kept(kept_MN.mutable_data_ptr<uint8_t>() + row * head.blocks(),
                                    static_cast<size_t>(visible));
      keep_top_p(scores_MN[row].narrow(0, 0, visible).softmax(0), options_.p, kept);
      keep_first(kept, options_.sink);
      keep_last(kept, head.own_block(row), options_.recent);
    }
    return kept_MN;
  }

 private:
  MeanPoolingOptions options_;
};

}  // namespace

std::unique_ptr<Selector> make_mean_pooling_selector(const MeanPoolingOptions& options) {
  check_share("mean_pooling", "p", options.p);
  check_count("mean_pooling", "sink", options.sink);
  check_count("mean_pooling", "recent", options.recent);
  return std::make_unique<MeanPoolingSelector>(options);
}

}  // namespace prism
