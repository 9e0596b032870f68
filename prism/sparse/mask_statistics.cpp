#include "prism/sparse/mask_statistics.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "prism/core/error.h"
#include "prism/sparse/exact_mass.h"

namespace prism {
namespace {

/// Chooses `count` rows (all, if there are fewer), evenly spread and including the last.
std::vector<int64_t> spread_rows(int64_t rows, int64_t count) {
  if (count == kAllRows) count = rows;
  count = std::min(count, rows);
  std::vector<int64_t> chosen;
  for (int64_t i = 0; i < count; ++i) chosen.push_back((i + 1) * rows / count - 1);
  return chosen;
}

/// The fewest blocks that hold at least as much mass as the kept blocks.
int64_t fewest_blocks(const torch::Tensor& mass_N, const torch::Tensor& kept_N) {
  constexpr double kRounding = 1e-12;
  const double kept = mass_N.dot(kept_N).item<double>();
  const auto sum_N = std::get<0>(mass_N.sort(0, /*descending=*/true)).cumsum(0);
  return kept == 0 ? 0 : std::min((sum_N < kept - kRounding).sum().item<int64_t>() + 1, mass_N.size(0));
}

void measure_recall(const HeadInput& head, const torch::Tensor& kept_MN, int64_t rows, HeadStatistics& found) {
  for (const int64_t row : spread_rows(head.rows(), rows)) {
    const auto mass_TN = exact_mass(head, row);
    const auto kept_N = kept_MN[row].narrow(0, 0, head.blocks()).to(torch::kDouble);
    const auto share_T = at::mv(mass_TN, kept_N).to(torch::kFloat);
    found.shares.insert(found.shares.end(), share_T.const_data_ptr<float>(),
                        share_T.const_data_ptr<float>() + share_T.numel());
    found.replaced += kept_N.sum().item<int64_t>();
    found.needed += fewest_blocks(mass_TN.mean(0), kept_N);
  }
}

/// Number of blocks in a head's lists that some query of their row sees.
int64_t count_kept(const BlockMask& mask, int64_t b, int64_t h, const HeadBlocks& blocks) {
  const auto counts_M = mask.counts_BHM[b][h].contiguous(), indices_MN = mask.indices_BHMN[b][h].contiguous();
  int64_t kept = 0;
  for (int64_t m = 0; m < blocks.rows(); ++m) {
    const int32_t* row = indices_MN.const_data_ptr<int32_t>() + m * indices_MN.size(1);
    kept += std::lower_bound(row, row + counts_M.const_data_ptr<int32_t>()[m], blocks.visible(m)) - row;
  }
  return kept;
}

int64_t key_blocks(const SelectorInput& input, int64_t key_block) {
  return (input.k_BGSD.size(2) + key_block - 1) / key_block;
}

}  // namespace

HeadStatistics& HeadStatistics::operator+=(const HeadStatistics& other) {
  kept += other.kept;
  visible += other.visible;
  shares.insert(shares.end(), other.shares.begin(), other.shares.end());
  needed += other.needed;
  replaced += other.replaced;
  return *this;
}

double HeadStatistics::oracle_density() const {
  if (!has_recall()) return std::numeric_limits<double>::quiet_NaN();
  return replaced == 0 ? 0 : density() * static_cast<double>(needed) / static_cast<double>(replaced);
}

double HeadStatistics::recall() const {
  return std::accumulate(shares.begin(), shares.end(), 0.0) / static_cast<double>(shares.size());
}

double HeadStatistics::recall_quantile(double part) const {
  if (shares.empty()) return std::numeric_limits<double>::quiet_NaN();
  auto sorted = shares;
  const auto place = static_cast<std::ptrdiff_t>(part * static_cast<double>(sorted.size() - 1));
  std::nth_element(sorted.begin(), sorted.begin() + place, sorted.end());
  return sorted[static_cast<size_t>(place)];
}

HeadStatistics sum_of(const std::vector<HeadStatistics>& heads) {
  HeadStatistics sum;
  for (const auto& head : heads) sum += head;
  return sum;
}

torch::Tensor kept_blocks(const SelectorInput& input, const BlockMask& mask) {
  auto visible = visible_blocks(input, mask.query_block_size, mask.key_block_size);
  if (!mask.defined()) return visible;
  const auto kept = kept_blocks(spread_to_heads(mask, input.heads()), key_blocks(input, mask.key_block_size));
  PRISM_CHECK(kept.sizes() == visible.sizes(), "block_mask",
              "expected a mask {} for these queries and keys in blocks of {} and {}; found {}; give its block sizes "
              "(--mask-blocks), or select a mask for them.",
              c10::str(visible.sizes()), mask.query_block_size, mask.key_block_size, c10::str(kept.sizes()));
  return kept.logical_and(visible);
}

torch::Tensor visible_blocks(const SelectorInput& input, int64_t query_block, int64_t key_block) {
  const SelectorLengths lengths(input);
  const int64_t batch = input.q_BTHD.size(0);
  auto visible_BHMN =
      at::zeros({batch, input.heads(), lengths.most_rows(query_block), key_blocks(input, key_block)}, torch::kBool);
  for (int64_t b = 0; b < batch; ++b) {
    if (lengths.queries(b) == 0) continue;
    const auto blocks = lengths.blocks(b, query_block, key_block);
    for (int64_t m = 0; m < blocks.rows(); ++m)
      visible_BHMN[b].select(1, m).narrow(1, 0, blocks.visible(m)).fill_(true);
  }
  return visible_BHMN;
}

std::vector<HeadStatistics> measure_mask(const SelectorInput& input, const BlockMask& mask, int64_t recall_rows) {
  const torch::NoGradGuard no_gradients;
  const SelectorLengths lengths(input);
  const auto kept_BHMN = recall_rows == 0 ? torch::Tensor() : kept_blocks(input, mask);
  const BlockMask lists = mask.defined() ? spread_to_heads(mask, input.heads()) : mask;
  std::vector<HeadStatistics> heads(static_cast<size_t>(input.heads()));
  for (int64_t b = 0; b < input.q_BTHD.size(0); ++b) {
    const auto blocks = lengths.blocks(b, mask.query_block_size, mask.key_block_size);
    for (int64_t h = 0; h < input.heads(); ++h) {
      HeadStatistics found;
      found.visible = blocks.visible_blocks();
      found.kept = mask.defined() ? count_kept(lists, b, h, blocks) : found.visible;
      if (recall_rows != 0)
        measure_recall(head_input(input, lengths, b, h, mask.query_block_size, mask.key_block_size), kept_BHMN[b][h],
                       recall_rows, found);
      heads[static_cast<size_t>(h)] += found;
    }
  }
  return heads;
}

}  // namespace prism
