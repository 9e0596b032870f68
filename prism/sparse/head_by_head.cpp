#include "prism/sparse/head_by_head.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>

#include <span>

#include "prism/core/error.h"
#include "prism/sparse/forced_blocks.h"

namespace prism {

HeadInput head_input(const SelectorInput& input, const SelectorLengths& lengths, int64_t b, int64_t h,
                     int64_t query_block, int64_t key_block) {
  return {lengths.blocks(b, query_block, key_block),
          input.q_BTHD[b].select(1, h).narrow(0, 0, lengths.queries(b)).to(torch::kFloat).contiguous(),
          input.k_BGSD[b][input.group(h)].narrow(0, 0, lengths.keys(b)).to(torch::kFloat).contiguous(),
          input.score_scale(), lengths.prompt_rows(b, query_block)};
}

HeadByHeadSelector::HeadByHeadSelector(const BlockSizes& blocks) : blocks_(blocks) {
  check(blocks);
}

std::unique_ptr<SelectorState> HeadByHeadSelector::make_state(const SelectorInput&) const {
  return std::make_unique<NoSelectorState>();
}

BlockMask HeadByHeadSelector::select(const SelectorInput& input, SelectorState&) const {
  const torch::NoGradGuard no_gradients;
  const SelectorLengths lengths(input);
  check_readable(input);
  const int64_t batch = input.q_BTHD.size(0), heads = input.heads();
  const int64_t rows = lengths.most_rows(blocks_.queries());
  std::vector<std::vector<int32_t>> kept(static_cast<size_t>(batch * heads * rows));
  at::parallel_for(0, batch * heads, 1, [&](int64_t first, int64_t end) {
    const torch::NoGradGuard no_gradients_here;
    for (int64_t i = first; i < end; ++i) {
      const int64_t b = i / heads, h = i % heads;
      if (lengths.queries(b) == 0) continue;
      const auto head = head_input(input, lengths, b, h, blocks_.queries(), blocks_.keys());
      check_finite(at::isfinite(head.q_TD).all().item<bool>(), "queries", h, b);
      check_finite(at::isfinite(head.k_SD).all().item<bool>(), "keys", h, b);
      auto chosen = select_head(head).to(torch::kByte).contiguous();
      PRISM_ASSERT(chosen.size(0) == head.rows() && chosen.size(1) == head.blocks(), "selector", "a mask of {}",
                   c10::str(chosen.sizes()));
      for (int64_t m = 0; m < head.rows(); ++m) {
        const std::span row(chosen.mutable_data_ptr<uint8_t>() + m * head.blocks(),
                            static_cast<size_t>(head.visible(m)));
        keep_last(row, head.own_block(m), 1);
        append_kept(row, kept[static_cast<size_t>(i * rows + m)]);
      }
    }
  });
  return make_block_mask(kept, batch, heads, blocks_.queries(), blocks_.keys());
}

torch::Tensor block_means(const torch::Tensor& rows_TD, int64_t block, int64_t first) {
  const int64_t front = first % block, end = front + rows_TD.size(0), blocks = (end + block - 1) / block;
  const auto padded = at::constant_pad_nd(rows_TD, {0, 0, front, blocks * block - end});
  const auto begins = at::arange(blocks) * block;
  const auto counts = (begins + block).clamp_max(end) - begins.clamp_min(front);
  return padded.view({blocks, block, rows_TD.size(1)}).sum(1) / counts.unsqueeze(1);
}

}  // namespace prism
