#include "prism/kernels/block_mask.h"

#include "prism/core/error.h"

namespace prism {

torch::Tensor expand_block_mask(const BlockMask& mask, const torch::Tensor& first_query_B,
                                const torch::Tensor& q_lengths_B, int64_t queries, int64_t keys) {
  const auto& indices = mask.indices_BHMN;
  PRISM_CHECK(
      mask.counts_BHM.dim() == 3 && indices.dim() == 4 && indices.sizes().slice(0, 3) == mask.counts_BHM.sizes(),
      "block_mask", "expected counts [B,H,M] and indices [B,H,M,N]; found {} and {} axes.", mask.counts_BHM.dim(),
      indices.dim());
  PRISM_CHECK(mask.query_block_size > 0 && mask.key_block_size > 0, "block_mask",
              "expected blocks of at least one token; found {} queries and {} keys.", mask.query_block_size,
              mask.key_block_size);
  PRISM_CHECK(mask.counts_BHM.numel() > 0 && mask.counts_BHM.max().item<int64_t>() <= indices.size(3) &&
                  mask.counts_BHM.min().item<int64_t>() >= 0,
              "block_mask", "expected rows with counts within 0-{}; found {}.", indices.size(3),
              mask.counts_BHM.numel() == 0 ? "no row" : "others");
  const int64_t batch = indices.size(0), heads = indices.size(1), rows = indices.size(2), width = indices.size(3);
  const int64_t key_blocks = (keys + mask.key_block_size - 1) / mask.key_block_size;
  const auto long_options = torch::TensorOptions(torch::kLong).device(indices.device());

  const auto listed = torch::arange(width, long_options) < mask.counts_BHM.unsqueeze(-1);
  if (width > 0) {
    const auto [lowest, highest] = torch::where(listed, indices, 0).aminmax();
    PRISM_CHECK(lowest.item<int64_t>() >= 0 && highest.item<int64_t>() < key_blocks, "block_mask",
                "expected block indices within 0-{} for {} keys; found {}-{}.", key_blocks - 1, keys,
                lowest.item<int64_t>(), highest.item<int64_t>());
  }
  // Entries past the count go to a column of their own, which is cut off.
  const auto column = torch::where(listed, indices.to(torch::kLong), key_blocks);
  auto kept_BHMK = torch::zeros({batch, heads, rows, key_blocks + 1}, long_options.dtype(torch::kBool));
  kept_BHMK.scatter_(-1, column, true);

  const auto last_query_B = (q_lengths_B - 1).clamp_min(0);
  const auto position_BT =
      first_query_B.unsqueeze(1) + torch::minimum(torch::arange(queries, long_options), last_query_B.unsqueeze(1));
  const auto row_BT =
      position_BT.floor_divide(mask.query_block_size) - first_query_B.unsqueeze(1).floor_divide(mask.query_block_size);
  PRISM_CHECK(row_BT.max().item<int64_t>() < rows, "block_mask", "expected rows for {} queries; found {} rows of {}.",
              queries, rows, mask.query_block_size);
  const auto row_BHTK = row_BT.view({batch, 1, queries, 1}).expand({batch, heads, queries, key_blocks + 1});
  const auto key_block_S = torch::arange(keys, long_options).floor_divide(mask.key_block_size);
  return kept_BHMK.gather(2, row_BHTK).index_select(-1, key_block_S);
}

}  // namespace prism
