#include "prism/sparse/exact_mass.h"

#include <ATen/Functions.h>

#include <limits>

namespace prism {

torch::Tensor exact_mass(const HeadInput& head, int64_t row) {
  const int64_t first = head.first_position(row), end = head.end_position(row);
  const auto queries = head.q_TD.narrow(0, first - head.first_query(), end - first).to(torch::kDouble);
  auto scores = at::mm(queries, head.k_SD.narrow(0, 0, end).to(torch::kDouble).t()).mul_(head.scale);
  scores.masked_fill_(at::arange(end).unsqueeze(0) > at::arange(first, end).unsqueeze(1),
                      -std::numeric_limits<double>::infinity());
  const auto padded = at::constant_pad_nd(scores.softmax(-1), {0, head.blocks() * head.key_block - end});
  return padded.view({end - first, head.blocks(), head.key_block}).sum(-1);
}

}  // namespace prism
