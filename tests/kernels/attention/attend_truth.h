// Inputs of attend(), attention by its definition, and the error that a backend may have.
//
//   const AttentionInput input = make_input({.keys = 20, .documents = true});
//   EXPECT_LE(difference(attend(input), loop_over_everything(input)), tolerance(input));
#pragma once

#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <ostream>
#include <vector>

#include "prism/kernels/attention/attend.h"

namespace prism {

/// @param value_dim  0: head_dim.
struct AttendCase {
  int64_t batch = 2, queries = 7, keys = 7, heads = 4, groups = 2, head_dim = 8, value_dim = 0;
  Causality causality = Causality::causal;
  int64_t window = 0;
  bool lengths = false, documents = false, kept = false, weights = false, blocks = false;
  torch::ScalarType type = torch::kFloat;
};

inline std::ostream& operator<<(std::ostream& out, const AttendCase& c) {
  return out << "B" << c.batch << " T" << c.queries << " S" << c.keys << " H" << c.heads << " G" << c.groups << " D"
             << c.head_dim << " E" << c.value_dim << (c.causality == Causality::causal ? " causal" : " full")
             << (c.window > 0 ? " window" : "") << (c.lengths ? " lengths" : "") << (c.documents ? " documents" : "")
             << (c.kept ? " kept" : "") << (c.weights ? " weights" : "") << (c.blocks ? " blocks" : "") << " "
             << c10::toString(c.type);
}

/// A mask that differs by sequence, head and row. Block n of a row is kept unless (row + head + batch + n) % 3 == 1;
/// block 0 is always kept.
inline BlockMask listed_mask(const AttendCase& c) {
  const int64_t size = 4, blocks = (c.keys + size - 1) / size, rows = blocks + 1;
  BlockMask mask;
  mask.query_block_size = mask.key_block_size = size;
  mask.counts_BHM = torch::zeros({c.batch, c.heads, rows}, torch::kInt);
  mask.indices_BHMN =
      torch::full({c.batch, c.heads, rows, blocks}, -7, torch::kInt);  // entries past the counts may be anything
  for (int64_t b = 0; b < c.batch; ++b)
    for (int64_t h = 0; h < c.heads; ++h)
      for (int64_t m = 0; m < rows; ++m) {
        int count = 0;
        for (int64_t n = 0; n < blocks; ++n)
          if (n == 0 || (m + h + b + n) % 3 != 1) mask.indices_BHMN[b][h][m][count++] = n;
        mask.counts_BHM[b][h][m] = count;
      }
  return mask;
}

/// Returns true if the mask keeps key s for the query at an absolute position.
inline bool block_kept(const BlockMask& mask, int64_t b, int64_t h, int64_t position, int64_t first_query, int64_t s) {
  const int64_t row = position / mask.query_block_size - first_query / mask.query_block_size;
  for (int i = 0; i < mask.counts_BHM[b][h][row].item<int>(); ++i)
    if (mask.indices_BHMN[b][h][row][i].item<int>() == s / mask.key_block_size) return true;
  return false;
}

inline AttentionInput make_input(const AttendCase& c) {
  torch::manual_seed(1);
  // Queries, keys and values are slices of a fused tensor, as in the decoder.
  const auto q = torch::randn({c.batch, c.queries, c.heads + 3, c.head_dim}).to(c.type).narrow(2, 1, c.heads);
  const auto kv = torch::randn({c.batch, c.keys, 2 * c.groups, std::max(c.head_dim, c.value_dim)}).to(c.type);
  AttentionInput input;
  input.q_BTHD = q;
  const int64_t value_dim = c.value_dim == 0 ? c.head_dim : c.value_dim;
  input.kv = {kv.narrow(2, 0, c.groups).narrow(3, 0, c.head_dim).transpose(1, 2),
              kv.narrow(2, c.groups, c.groups).narrow(3, 0, value_dim).transpose(1, 2)};
  input.causality = c.causality;
  input.window = c.window;
  if (c.lengths) {
    input.q_lengths_B = torch::tensor({c.queries, std::max<int64_t>(1, c.queries / 2)}, torch::kInt);
    input.kv_lengths_B = torch::tensor({c.keys - 1, std::max<int64_t>(1, c.keys / 2)}, torch::kInt);
  }
  if (c.documents)
    input.documents_BS = torch::arange(c.keys, torch::kInt).floor_divide(3).expand({c.batch, c.keys}).contiguous();
  if (c.kept) input.kept_heads_BH = (torch::arange(c.batch * c.heads).view({c.batch, c.heads}) % 3).ne(0);
  if (c.weights) input.head_weights_BH = torch::linspace(-1, 0.9, c.batch * c.heads).view({c.batch, c.heads});
  if (c.blocks) input.block_mask = listed_mask(c);
  return input;
}

/// Attention by its definition, element by element, in double precision on the same values.
struct AttentionTruth {
  torch::Tensor out_BTHE, lse_BHT;
};

inline AttentionTruth loop_over_everything(const AttentionInput& input) {
  const auto q = input.q_BTHD.to(torch::kDouble).contiguous(), k = input.kv.k_BGSD.to(torch::kDouble).contiguous(),
             v = input.kv.v_BGSE.to(torch::kDouble).contiguous();
  const int64_t batch = q.size(0), queries = q.size(1), heads = q.size(2), head_dim = q.size(3), groups = k.size(1),
                keys = k.size(2), value_dim = v.size(3);
  AttentionTruth truth{torch::zeros({batch, queries, heads, value_dim}, torch::kDouble),
                       torch::full({batch, heads, queries}, -std::numeric_limits<double>::infinity(), torch::kDouble)};
  const auto Q = q.accessor<double, 4>(), K = k.accessor<double, 4>(), V = v.accessor<double, 4>();
  auto O = truth.out_BTHE.accessor<double, 4>();
  auto L = truth.lse_BHT.accessor<double, 3>();
  const double scale = 1 / std::sqrt(static_cast<double>(head_dim));
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t q_length = input.q_lengths_B.defined() ? input.q_lengths_B[b].item<int>() : queries;
    const int64_t kv_length = input.kv_lengths_B.defined() ? input.kv_lengths_B[b].item<int>() : keys;
    for (int64_t h = 0; h < heads; ++h) {
      const int64_t g = h * groups / heads;
      const double head_weight = input.head_weights_BH.defined() ? input.head_weights_BH[b][h].item<double>() : 1;
      const bool kept = !input.kept_heads_BH.defined() || input.kept_heads_BH[b][h].item<bool>();
      for (int64_t t = 0; t < q_length; ++t) {
        const int64_t position = t + kv_length - q_length;
        double sum = 0;
        std::vector<double> out(value_dim, 0.0);
        for (int64_t s = 0; s < kv_length; ++s) {
          if (input.causality == Causality::causal && s > position) continue;
          if (input.window > 0 && s <= position - input.window) continue;
          if (input.documents_BS.defined() &&
              input.documents_BS[b][s].item<int>() !=
                  input.documents_BS[b][std::clamp<int64_t>(position, 0, keys - 1)].item<int>())
            continue;
          const int64_t first_query = input.first_query.value_or(kv_length - q_length);
          if (input.block_mask.defined() && !block_kept(input.block_mask, b, h, first_query + t, first_query, s))
            continue;
          double score = 0;
          for (int64_t d = 0; d < head_dim; ++d) score += Q[b][t][h][d] * K[b][g][s][d];
          const double weight = std::exp(score * scale);
          sum += weight;
          for (int64_t d = 0; d < value_dim; ++d) out[d] += weight * V[b][g][s][d];
        }
        if (sum == 0) continue;
        if (!kept) continue;
        L[b][h][t] = std::log(sum);
        for (int64_t d = 0; d < value_dim; ++d) O[b][t][h][d] = head_weight * out[d] / sum;
      }
    }
  }
  return truth;
}

/// Weights of heads are at most 1 in magnitude, and torch rounds them, too. Scores carry (2 D max|q| max|k| scale) eps,
/// the softmax passes them on, sums over keys add 2 S eps; out is rounded once.
inline double tolerance(const AttentionInput& input) {
  const auto type = input.q_BTHD.scalar_type();
  const double rounding = type == torch::kBFloat16 ? 0x1p-8 : 0x1p-24;
  const double work = type == torch::kBFloat16 ? 0x1p-8 : 0x1p-23;  // SDPA rounds its weights to bfloat16
  const double score = input.q_BTHD.abs().max().item<double>() * input.kv.k_BGSD.abs().max().item<double>() *
                       std::sqrt(static_cast<double>(input.q_BTHD.size(3)));
  const double keys = type == torch::kBFloat16 ? 1 : static_cast<double>(2 * input.kv.k_BGSD.size(2));
  const double statistics =
      (type == torch::kBFloat16 ? 0x1p-23 : work) * 2 * static_cast<double>(input.q_BTHD.size(3)) * score;
  return (rounding + work * keys + statistics) * input.kv.v_BGSE.abs().max().item<double>();
}

inline double difference(const AttentionOutput& output, const AttentionTruth& truth) {
  return (output.out_BTHE.to(torch::kDouble) - truth.out_BTHE).abs().max().item<double>();
}

}  // namespace prism
