#include "prism/sparse/methods/plain_selectors.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "prism/core/error.h"
#include "prism/core/random.h"
#include "prism/sparse/exact_mass.h"
#include "prism/sparse/forced_blocks.h"
#include "prism/sparse/head_by_head.h"
#include "prism/sparse/top_p.h"

namespace prism {
namespace {

void check_share(const char* operation, const char* name, double share) {
  PRISM_CHECK(share > 0 && share <= 1, operation, "{}: expected a share within (0, 1]; found {}; change it.", name,
              share);
}

void check_count(const char* operation, const char* name, int64_t count) {
  PRISM_CHECK(count >= 0, operation, "{}: expected at least 0; found {}; raise it.", name, count);
}

/// Selector that decides each row independently, by a function that marks which of the row's visible blocks it keeps.
class RowByRow : public HeadByHeadSelector {
 public:
  using Keep = std::function<void(const HeadInput&, int64_t row, std::span<uint8_t> kept)>;

  RowByRow(const BlockSizes& blocks, Keep keep) : HeadByHeadSelector(blocks), keep_(std::move(keep)) {}

 protected:
  torch::Tensor select_head(const HeadInput& head) const override {
    auto kept_MN = at::zeros({head.rows(), head.blocks()}, torch::kByte);
    for (int64_t row = 0; row < head.rows(); ++row)
      keep_(head, row,
            {kept_MN.mutable_data_ptr<uint8_t>() + row * head.blocks(), static_cast<size_t>(head.visible(row))});
    return kept_MN;
  }

 private:
  Keep keep_;
};

void keep_share(const torch::Tensor& mass_N, double share, std::span<uint8_t> kept) {
  const auto mass = mass_N.to(torch::kFloat).contiguous();
  std::vector<uint64_t> keys;
  keep_top_p({mass.const_data_ptr<float>(), kept.size()}, share, kept, keys);
}

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
      keep_share(scores_MN[row].narrow(0, 0, visible).softmax(0), options_.p, kept);
      keep_first(kept, options_.sink);
      keep_last(kept, head.own_block(row), options_.recent);
    }
    return kept_MN;
  }

 private:
  MeanPoolingOptions options_;
};

class DenseSelector : public Selector {
 public:
  explicit DenseSelector(const BlockSizes& blocks) : blocks_(blocks) { check(blocks); }

  std::unique_ptr<SelectorState> make_state(const SelectorInput&) const override {
    return std::make_unique<NoSelectorState>();
  }
  BlockMask select(const SelectorInput& input, SelectorState&) const override {
    const SelectorLengths checked(input);
    return {blocks_.queries(), blocks_.keys(), {}, {}};
  }

 private:
  BlockSizes blocks_;
};

}  // namespace

std::unique_ptr<Selector> make_mean_pooling_selector(const MeanPoolingOptions& options) {
  check_share("mean_pooling", "p", options.p);
  check_count("mean_pooling", "sink", options.sink);
  check_count("mean_pooling", "recent", options.recent);
  return std::make_unique<MeanPoolingSelector>(options);
}

std::unique_ptr<Selector> make_sink_window_selector(const SinkWindowOptions& options) {
  check_count("sink_window", "sink", options.sink);
  check_count("sink_window", "window", options.window);
  return std::make_unique<RowByRow>(options.blocks,
                                    [options](const HeadInput& head, int64_t row, std::span<uint8_t> kept) {
                                      keep_first(kept, options.sink);
                                      keep_last(kept, head.own_block(row), options.window);
                                    });
}

std::unique_ptr<Selector> make_random_selector(const RandomBlocksOptions& options) {
  check_share("random", "share", options.share);
  check_count("random", "sink", options.sink);
  return std::make_unique<RowByRow>(
      options.blocks, [options](const HeadInput& head, int64_t row, std::span<uint8_t> kept) {
        Random random(static_cast<uint64_t>(options.seed), static_cast<uint64_t>(head.first_row() + row));
        for (uint8_t& block : kept) block = random.uniform() < options.share;
        keep_first(kept, options.sink);
      });
}

std::unique_ptr<Selector> make_oracle_selector(const OracleOptions& options) {
  check_share("oracle", "p", options.p);
  return std::make_unique<RowByRow>(options.blocks,
                                    [options](const HeadInput& head, int64_t row, std::span<uint8_t> kept) {
                                      keep_share(exact_mass(head, row).mean(0), options.p, kept);
                                    });
}

std::unique_ptr<Selector> make_dense_selector(const DenseOptions& options) {
  return std::make_unique<DenseSelector>(options.blocks);
}

}  // namespace prism
