// Moves keys and values of an input of attend() into pages.
//
//   const AttentionInput input = make_input({.keys = 300}), paged = in_pages(input, /*page=*/128);
#pragma once

#include <ATen/Functions.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "prism/kernels/attention/attend.h"

namespace prism {

/// The number of keys of each sequence.
inline std::vector<int64_t> key_lengths(const AttentionInput& input) {
  std::vector<int64_t> lengths(static_cast<size_t>(input.q_BTHD.size(0)), input.kv.k_BGSD.size(2));
  for (size_t b = 0; b < lengths.size(); ++b)
    if (input.kv_lengths_B.defined()) lengths[b] = input.kv_lengths_B[static_cast<int64_t>(b)].item<int>();
  return lengths;
}

/// The same input with keys and values in pages of any order. The memory after a sequence's last key is NaN, entries of
/// the table after its last page are -1, and some pages belong to no sequence.
inline AttentionInput in_pages(const AttentionInput& input, int64_t page, uint64_t seed = 1) {
  torch::manual_seed(seed);
  const auto lengths = key_lengths(input);
  const auto batch = static_cast<int64_t>(lengths.size()), keys = input.kv.k_BGSD.size(2);
  const int64_t count = (keys + page - 1) / page, pages = batch * count + 2;
  const auto order = torch::randperm(pages);
  AttentionInput paged = input;
  paged.kv.page_table_BN = torch::full({batch, count}, -1, torch::kInt);
  for (auto member : {&KeyValues::k_BGSD, &KeyValues::v_BGSE}) {
    const auto& whole = input.kv.*member;
    auto& stored = paged.kv.*member =
                       torch::full({pages, whole.size(1), page, whole.size(3)},
                                   std::numeric_limits<double>::quiet_NaN(), whole.options().requires_grad(false));
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t first = 0; first < lengths[static_cast<size_t>(b)]; first += page) {
        const int64_t rows = std::min(page, lengths[static_cast<size_t>(b)] - first);
        const auto at = order[b * count + first / page].item<int64_t>();
        paged.kv.page_table_BN[b][first / page] = at;
        stored[at].narrow(1, 0, rows).copy_(whole[b].narrow(1, first, rows));
      }
  }
  paged.kv_lengths_B = torch::tensor(lengths).to(torch::kInt);
  if (input.documents_BS.defined())
    paged.documents_BS = torch::cat(
        {input.documents_BS, input.documents_BS.narrow(1, keys - 1, 1).expand({batch, count * page - keys})}, 1);
  return paged;
}

/// Calls check(output, backend, decodes) for each backend that serves an input and, with flash, which alone knows the
/// difference, for queries that are decoded, queries of prompts, and either by their number.
template <class Check>
void attend_in_every_way(AttentionInput input, const Check& check) {
  for (const auto backend : {AttentionBackend::reference, AttentionBackend::torch, AttentionBackend::flash}) {
    if (backend == AttentionBackend::torch && !torch_backend_serves(input)) continue;
    if (backend == AttentionBackend::flash && !flash_backend_serves(input)) continue;
    for (const auto decodes : {std::optional<bool>(), std::optional(true), std::optional(false)}) {
      input.decodes = decodes;
      check(attend(input, backend), backend, decodes);
      if (backend != AttentionBackend::flash) break;
    }
  }
}

/// Rows of `values` as int8 codes, 99 where they are NaN, and their scales.
struct Int8Rows {
  torch::Tensor codes, scales;
};

inline Int8Rows as_int8(const torch::Tensor& values) {
  const auto x = values.to(torch::kFloat), scales = x.abs().amax(-1) / 127;
  return {(x / scales.unsqueeze(-1)).round().nan_to_num(99).to(torch::kChar), scales};
}

/// The same keys and values in pages of int8.
inline AttentionInput in_int8_pages(const AttentionInput& input, int64_t page, uint64_t seed = 1) {
  auto paged = in_pages(input, page, seed);
  const auto k = as_int8(paged.kv.k_BGSD), v = as_int8(paged.kv.v_BGSE);
  paged.kv.k_BGSD = k.codes;
  paged.kv.v_BGSE = v.codes;
  paged.kv.k_scales_PGS = k.scales;
  paged.kv.v_scales_PGS = v.scales;
  return paged;
}

/// The values that int8 pages stand for, in one piece, as `type`.
inline AttentionInput rounded_to_int8(const AttentionInput& input, torch::ScalarType type) {
  auto rounded = input;
  for (auto member : {&KeyValues::k_BGSD, &KeyValues::v_BGSE}) {
    const auto rows = as_int8(input.kv.*member);
    rounded.kv.*member = (rows.codes.to(torch::kFloat) * rows.scales.unsqueeze(-1)).to(type);
  }
  return rounded;
}

}  // namespace prism
