#include "prism/sparse/methods/flex_prefill.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "prism/core/error.h"
#include "prism/sparse/methods/last_queries.h"

namespace prism {
namespace {

constexpr int64_t kBudgetUnit = 128;  ///< keys per block of the budget, independent of the block size

/// Sums over blocks of a head's keys or distances; the last block may be partial.
torch::Tensor block_sums(const torch::Tensor& values_S, int64_t block) {
  const int64_t blocks = (values_S.size(0) + block - 1) / block;
  return at::constant_pad_nd(values_S, {0, blocks * block - values_S.size(0)}).view({blocks, block}).sum(1);
}

/// The number of blocks for the largest values that hold at most `share`, plus one value.
int64_t budget_of(const torch::Tensor& values_S, double share) {
  const auto sums = std::get<0>(values_S.to(torch::kDouble).sort(/*dim=*/0, /*descending=*/true)).cumsum(0);
  return ((sums <= share).sum().item<int64_t>() + 1) / kBudgetUnit + 1;
}

/// Sum of p log(p / m) over all entries with p > 0.
torch::Tensor divergence(const torch::Tensor& p, const torch::Tensor& m) {
  return torch::where(p > 0, p * (p / m).log(), 0).sum();
}

/// pooling_divergence() of a head, given the attention of its last queries.
double divergence_of(const HeadInput& head, const LastQueries& last) {
  const auto exact_N = block_sums(last.vertical_S / last.count, head.key_block).to(torch::kDouble);
  const auto query_D = head.q_TD.slice(0, head.queries - last.count).mean(0);
  const auto pooled_N =
      at::mv(block_means(head.k_SD, head.key_block), query_D).mul_(head.scale).to(torch::kDouble).softmax(0);
  const auto middle_N = (exact_N + pooled_N) / 2;
  return std::sqrt(((divergence(exact_N, middle_N) + divergence(pooled_N, middle_N)) / 2).item<double>());
}

/// The indices of the `count` largest values; index 0 is always included.
torch::Tensor largest_with_first(const torch::Tensor& values_N, int64_t count) {
  auto values = values_N.clone();
  values[0] = std::numeric_limits<double>::infinity();
  return values.argsort(/*stable=*/true, /*dim=*/0, /*descending=*/true).slice(0, 0, count);
}

class FlexPrefillSelector : public HeadByHeadSelector {
 public:
  explicit FlexPrefillSelector(const FlexPrefillOptions& options)
      : HeadByHeadSelector(options.blocks), options_(options) {
    PRISM_CHECK(options.gamma > 0 && options.gamma <= 1 && options.tau >= 0 && options.min_budget >= 0, "flex_prefill",
                "expected gamma within (0, 1], tau and min_budget of at least 0; found {}, {} and {}; change them.",
                options.gamma, options.tau, options.min_budget);
    PRISM_CHECK(options.blocks.queries() == options.blocks.keys(), "flex_prefill",
                "expected equal block sizes for queries and keys; found {} and {}; make them equal.",
                options.blocks.queries(), options.blocks.keys());
  }

 protected:
  torch::Tensor select_head(const HeadInput& head) const override {
    constexpr int64_t kShort = 256;
    if (head.keys <= std::max(kShort, options_.min_budget)) return at::ones({head.rows(), head.blocks()}, torch::kBool);
    const auto last = attend_with_last(head, head.key_block);
    const auto vertical_S = last.vertical_S / last.count, slash_S = last.slash_S / last.count;
    const int64_t least = std::max<int64_t>(1, (options_.min_budget + head.key_block - 1) / head.key_block);
    const bool query_aware = divergence_of(head, last) < options_.tau;
    const auto budget = [&](const torch::Tensor& values) {
      return std::min(query_aware ? least : std::max(least, budget_of(values, options_.gamma)), head.blocks());
    };
    auto kept_MN = at::zeros({head.rows(), head.blocks()}, torch::kBool);
    keep_columns(block_sums(vertical_S, head.key_block), budget(vertical_S), kept_MN);
    keep_diagonals(head, block_sums(slash_S, head.key_block), budget(slash_S), kept_MN);
    if (query_aware) kept_MN.logical_or_(choose_by_pooled_queries(head));
    return kept_MN;
  }

 private:
  static void keep_columns(const torch::Tensor& sums_N, int64_t count, torch::Tensor kept_MN) {
    kept_MN.index_fill_(1, largest_with_first(sums_N.to(torch::kDouble), count), true);
  }

  static void keep_diagonals(const HeadInput& head, const torch::Tensor& sums_N, int64_t count, torch::Tensor kept_MN) {
    const auto chosen = largest_with_first(sums_N.to(torch::kDouble), count);
    const auto row_M = at::arange(head.rows()) + head.first_row(), block_N = at::arange(head.blocks());
    kept_MN.logical_or_(at::isin(row_M.unsqueeze(1) - block_N.unsqueeze(0), chosen));
  }

  /// Keeps the largest entries of the softmax of pooled queries over pooled keys that hold a share gamma, over all rows
  /// together.
  torch::Tensor choose_by_pooled_queries(const HeadInput& head) const {
    const auto means_MD = block_means(head.q_TD, head.query_block, head.first_query());
    auto scores = at::mm(means_MD, block_means(head.k_SD, head.key_block).t()).mul_(head.scale);
    const auto row_M = at::arange(head.rows()) + head.first_row(), block_N = at::arange(head.blocks());
    scores.masked_fill_(block_N.unsqueeze(0) > row_M.unsqueeze(1), -std::numeric_limits<float>::infinity());
    const auto weights = scores.softmax(-1).to(torch::kDouble).flatten();
    const auto [sorted, order] = weights.sort(/*stable=*/true, /*dim=*/0, /*descending=*/true);
    const auto within = sorted.cumsum(0) <= options_.gamma * static_cast<double>(head.rows());
    auto kept = at::zeros({weights.size(0)}, torch::kBool);
    kept.index_put_({order.masked_select(within)}, torch::ones({}, torch::kBool));
    return kept.view({head.rows(), head.blocks()});
  }

  FlexPrefillOptions options_;
};

}  // namespace

double pooling_divergence(const HeadInput& head) {
  return divergence_of(head, attend_with_last(head, head.key_block));
}

std::unique_ptr<Selector> make_flex_prefill_selector(const FlexPrefillOptions& options) {
  return std::make_unique<FlexPrefillSelector>(options);
}

}  // namespace prism
