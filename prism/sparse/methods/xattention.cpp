#include "prism/sparse/methods/xattention.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "prism/core/error.h"
#include "prism/sparse/head_by_head.h"
#include "prism/sparse/option_checks.h"

namespace prism {
namespace {

/// Concatenates rows in groups of `stride`. Zeros pad the front to the first group's boundary, and the back.
/// @param first  absolute position of the first row.
torch::Tensor groups_of(const torch::Tensor& rows_TD, int64_t first, int64_t stride, bool backwards) {
  const int64_t front = first % stride, count = front + rows_TD.size(0), back = (stride - count % stride) % stride;
  auto groups = at::constant_pad_nd(rows_TD, {0, 0, front, back}).view({-1, stride, rows_TD.size(1)});
  if (backwards) groups = groups.flip(1);
  return groups.reshape({groups.size(0), -1});
}

class XAttentionSelector : public HeadByHeadSelector {
 public:
  explicit XAttentionSelector(const XAttentionOptions& options)
      : HeadByHeadSelector(options.blocks), options_(options) {
    PRISM_CHECK(options.stride > 0 && options.blocks.queries() % options.stride == 0 &&
                    options.blocks.keys() % options.stride == 0,
                "xattention", "stride: expected a divisor of the block sizes, {} and {}; found {}; choose e.g. 8.",
                options.blocks.queries(), options.blocks.keys(), options.stride);
    check_share("xattention", "threshold", options.threshold);
  }

 protected:
  torch::Tensor select_head(const HeadInput& head) const override {
    const int64_t stride = options_.stride, first_group = head.first_query() / stride;
    const auto queries = groups_of(head.q_TD, head.first_query(), stride, /*backwards=*/true);
    const auto keys = groups_of(head.k_SD, 0, stride, /*backwards=*/false);
    const int64_t groups_a_row = head.query_block / stride, groups_a_block = head.key_block / stride;
    const auto key_group = at::arange(keys.size(0));
    auto kept_MN = at::zeros({head.rows(), head.blocks()}, torch::kBool);
    for (int64_t row = 0; row < head.rows(); ++row) {
      const int64_t begin = std::max((head.first_row() + row) * groups_a_row - first_group, int64_t{0});
      const int64_t end = std::min((head.first_row() + row + 1) * groups_a_row - first_group, queries.size(0));
      auto scores =
          at::mm(queries.narrow(0, begin, end - begin), keys.t()).mul_(head.scale / static_cast<double>(stride));
      const auto own_group = at::arange(begin, end) + first_group;
      scores.masked_fill_(key_group.unsqueeze(0) > own_group.unsqueeze(1), -std::numeric_limits<float>::infinity());
      const auto mass = scores.softmax(-1).sum(0);
      const auto padded = at::constant_pad_nd(mass, {0, head.blocks() * groups_a_block - mass.size(0)});
      keep_mass(padded.view({head.blocks(), groups_a_block}).sum(1).to(torch::kDouble).contiguous(),
                head.own_block(row), head.visible(row), kept_MN[row]);
    }
    return kept_MN;
  }

 private:
  /// Keeps the first block, the row's own, and then the largest until all kept blocks hold the share.
  void keep_mass(const torch::Tensor& mass_N, int64_t own, int64_t visible, torch::Tensor kept_N) const {
    const double* mass = mass_N.const_data_ptr<double>();
    bool* kept = kept_N.mutable_data_ptr<bool>();
    double held = 0;
    const double required = options_.threshold * std::accumulate(mass, mass + visible, 0.0);
    const auto keep = [&](int64_t v) {
      if (!kept[v]) held += mass[v];
      kept[v] = true;
    };
    keep(0);
    for (int64_t v = own; v < visible; ++v) keep(v);
    std::vector<int64_t> order(static_cast<size_t>(visible));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return mass[a] > mass[b]; });
    for (const int64_t v : order) {
      if (held >= required) break;
      keep(v);
    }
  }

  XAttentionOptions options_;
};

}  // namespace

std::unique_ptr<Selector> make_xattention_selector(const XAttentionOptions& options) {
  return std::make_unique<XAttentionSelector>(options);
}

}  // namespace prism
