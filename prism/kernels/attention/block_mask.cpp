#include "prism/kernels/attention/block_mask.h"

#include <algorithm>
#include <utility>

#include "prism/core/error.h"

namespace prism {
namespace {

void check_block_sizes(int64_t query_block_size, int64_t key_block_size) {
  PRISM_CHECK(query_block_size > 0 && key_block_size > 0, "block_mask",
              "expected blocks of at least one token; found {} queries and {} keys; choose larger blocks.",
              query_block_size, key_block_size);
}

}  // namespace

BlockMask make_block_mask(const std::vector<std::vector<int32_t>>& kept_BHM, int64_t batch, int64_t heads,
                          int64_t query_block_size, int64_t key_block_size) {
  check_block_sizes(query_block_size, key_block_size);
  const auto count = static_cast<int64_t>(kept_BHM.size());
  PRISM_ASSERT(batch > 0 && heads > 0 && count % (batch * heads) == 0, "block_mask", "{} rows for {} heads", count,
               batch * heads);
  const int64_t rows = count / (batch * heads);
  size_t width = 0;
  for (const auto& row : kept_BHM) width = std::max(width, row.size());
  BlockMask mask{query_block_size, key_block_size, torch::empty({batch, heads, rows}, torch::kInt),
                 torch::zeros({batch, heads, rows, static_cast<int64_t>(width)}, torch::kInt)};
  auto* counts = mask.counts_BHM.mutable_data_ptr<int32_t>();
  auto* indices = mask.indices_BHMN.mutable_data_ptr<int32_t>();
  for (size_t i = 0; i < kept_BHM.size(); ++i) {
    counts[i] = static_cast<int32_t>(kept_BHM[i].size());
    std::copy(kept_BHM[i].begin(), kept_BHM[i].end(), indices + i * width);
  }
  return mask;
}

BlockMask make_block_mask(const torch::Tensor& kept_BHMN, int64_t query_block_size, int64_t key_block_size) {
  check_block_sizes(query_block_size, key_block_size);
  PRISM_CHECK(kept_BHMN.dim() == 4 && kept_BHMN.numel() > 0, "block_mask",
              "expected a non-empty [batch, heads, rows, key blocks]; found {}; pass one flag for each block.",
              c10::str(kept_BHMN.sizes()));
  const auto kept = kept_BHMN.to(torch::kBool);
  const auto counts_BHM = kept.sum(-1, /*keepdim=*/false, torch::kInt);
  // Kept blocks sort before the others and stay in order.
  const auto order = std::get<1>(kept.logical_not().to(torch::kByte).sort(/*stable=*/true, /*dim=*/-1, false));
  const int64_t width = counts_BHM.max().item<int64_t>();
  return {query_block_size, key_block_size, counts_BHM, order.narrow(-1, 0, width).to(torch::kInt).contiguous()};
}

BlockMask checked_block_mask(const BlockMask& given, int64_t key_blocks) {
  check_block_sizes(given.query_block_size, given.key_block_size);
  PRISM_CHECK(given.defined() && given.counts_BHM.dim() == 3 && given.counts_BHM.numel() > 0 &&
                  given.indices_BHMN.dim() == 4 && given.indices_BHMN.sizes().slice(0, 3) == given.counts_BHM.sizes(),
              "block_mask",
              "expected non-empty counts [B,H,M] and indices [B,H,M,N]; found {} and {}; "
              "reshape them.",
              given.defined() ? c10::str(given.counts_BHM.sizes()) : "none",
              given.indices_BHMN.defined() ? c10::str(given.indices_BHMN.sizes()) : "none");
  BlockMask mask = given;
  mask.counts_BHM = given.counts_BHM.to(torch::kCPU, torch::kInt).contiguous();
  mask.indices_BHMN = given.indices_BHMN.to(torch::kCPU, torch::kInt).contiguous();
  const int64_t width = mask.indices_BHMN.size(3);
  for (int64_t row = 0; row < mask.counts_BHM.numel(); ++row) {
    const int64_t count = mask.counts_BHM.const_data_ptr<int32_t>()[row];
    PRISM_CHECK(count >= 0 && count <= width, "block_mask",
                "expected rows with counts from 0 to {}; found {}; pass a count of kept blocks for each row.", width,
                count);
    const int32_t* index = mask.indices_BHMN.const_data_ptr<int32_t>() + row * width;
    for (int64_t i = 0; i < count; ++i)
      PRISM_CHECK(
          index[i] < key_blocks && index[i] > (i == 0 ? -1 : index[i - 1]), "block_mask",
          "expected ascending block indices from 0 to {}; found {} at {}; sort each row and remove repeated blocks.",
          key_blocks - 1, index[i], i);
  }
  return mask;
}

BlockMask spread_to_heads(const BlockMask& mask, int64_t heads) {
  const int64_t given = mask.counts_BHM.size(1);
  PRISM_CHECK(given > 0 && heads % given == 0, "block_mask",
              "expected a mask of {} heads, or of a number that divides them; found {}; repeat or group its heads.",
              heads, given);
  if (given == heads) return mask;
  BlockMask spread = mask;
  spread.counts_BHM = mask.counts_BHM.repeat_interleave(heads / given, 1);
  spread.indices_BHMN = mask.indices_BHMN.repeat_interleave(heads / given, 1);
  return spread;
}

torch::Tensor kept_blocks(const BlockMask& mask, int64_t key_blocks) {
  const auto lists = checked_block_mask(mask, key_blocks);
  const auto &counts = lists.counts_BHM, &indices = lists.indices_BHMN;
  const auto listed = torch::arange(indices.size(3), torch::kLong) < counts.unsqueeze(-1);
  // Entries past the count go to an extra column, which is cut off.
  auto kept = torch::zeros({indices.size(0), indices.size(1), indices.size(2), key_blocks + 1}, torch::kBool);
  kept.scatter_(-1, torch::where(listed, indices.to(torch::kLong), key_blocks), true);
  return kept.narrow(-1, 0, key_blocks).to(mask.counts_BHM.device());
}

torch::Tensor expand_block_mask(const BlockMask& mask, const torch::Tensor& first_query_B,
                                const torch::Tensor& q_lengths_B, int64_t queries, int64_t keys) {
  check_block_sizes(mask.query_block_size, mask.key_block_size);
  const int64_t key_blocks = (keys + mask.key_block_size - 1) / mask.key_block_size;
  const auto kept_BHMK = kept_blocks(mask, key_blocks).to(first_query_B.device());
  const int64_t batch = kept_BHMK.size(0), rows = kept_BHMK.size(2);
  const auto long_options = torch::TensorOptions(torch::kLong).device(kept_BHMK.device());
  const auto last_query_B = (q_lengths_B - 1).clamp_min(0);
  const auto position_BT =
      first_query_B.unsqueeze(1) + torch::minimum(torch::arange(queries, long_options), last_query_B.unsqueeze(1));
  const auto row_BT =
      position_BT.floor_divide(mask.query_block_size) - first_query_B.unsqueeze(1).floor_divide(mask.query_block_size);
  PRISM_CHECK(row_BT.max().item<int64_t>() < rows, "block_mask",
              "expected rows for {} queries; found {} rows of {}; pass a mask that was made for these queries.",
              queries, rows, mask.query_block_size);
  const auto row_BHTK = row_BT.view({batch, 1, queries, 1}).expand({batch, kept_BHMK.size(1), queries, key_blocks});
  const auto key_block_S = torch::arange(keys, long_options).floor_divide(mask.key_block_size);
  return kept_BHMK.gather(2, row_BHTK).index_select(-1, key_block_S);
}

}  // namespace prism
