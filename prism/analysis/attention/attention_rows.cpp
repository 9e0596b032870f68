#include "prism/analysis/attention/attention_rows.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "prism/core/error.h"

namespace prism {
namespace {

// N rows of a product, D head width

/// Scores computed at a time: 4 MiB of float32, large enough for an efficient matrix product.
constexpr int64_t kBlockScores = int64_t{1} << 20;

void check_served(const AttentionInput& input, const char* operation) {
  PRISM_CHECK(!input.kv.page_table_BN.defined() && !input.block_mask.defined() && !input.kept_heads_BH.defined(),
              operation, "expected {}.",
              input.kv.page_table_BN.defined() ? "keys in one piece; found keys in pages; leave the pages out"
              : input.block_mask.defined()     ? "dense attention; found a block mask; leave the selector out"
                                               : "attention that computes every head; found heads that are not "
                                                 "computed; leave kept_heads_BH undefined");
}

/// The sequence of a span without padding or lengths. Keys are converted to the type that scores are computed in.
AttentionInput cut_sequence(const AttentionInput& input, const QuerySpan& span) {
  AttentionInput sequence;
  sequence.q_BTHD = input.q_BTHD.narrow(0, span.sequence, 1).narrow(1, 0, span.queries);
  sequence.kv.k_BGSD = input.kv.k_BGSD.narrow(0, span.sequence, 1)
                           .narrow(2, 0, span.keys)
                           .to(input.q_BTHD.scalar_type() == torch::kDouble ? torch::kDouble : torch::kFloat);
  if (input.documents_BS.defined())
    sequence.documents_BS = input.documents_BS.narrow(0, span.sequence, 1).narrow(1, 0, span.keys);
  sequence.causality = input.causality;
  sequence.window = input.window;
  return sequence;
}

/// Some queries of a sequence, and the keys that they may see.
struct QueryBlock {
  torch::Tensor q_THD, k_GSD;
  torch::Tensor hidden_TS;     ///< bool, keys that a query does not see; undefined: none
  int64_t first_position = 0;  ///< position of the first query among the keys
};

/// Queries [first, first + count) of a sequence. Causal attention aligns queries with the last keys, so each query
/// keeps its position if the keys after the last query are cut off.
QueryBlock cut_queries(const AttentionInput& sequence, int64_t first, int64_t count) {
  const bool is_causal = sequence.causality == Causality::causal;
  const int64_t all = sequence.kv.k_BGSD.size(2), past = all - sequence.q_BTHD.size(1);
  const int64_t keys = is_causal ? past + first + count : all;
  QueryBlock block{
      sequence.q_BTHD[0].narrow(0, first, count), sequence.kv.k_BGSD[0].narrow(1, 0, keys), {}, past + first};
  const auto hide = [&](const torch::Tensor& more) {
    block.hidden_TS = block.hidden_TS.defined() ? block.hidden_TS | more : more;
  };
  const auto key_S = at::arange(keys, sequence.q_BTHD.options().dtype(torch::kLong));
  const auto position_T1 = key_S.narrow(0, block.first_position, count).unsqueeze(1);
  if (is_causal) hide(key_S > position_T1);
  if (sequence.window > 0) hide(key_S <= position_T1 - sequence.window);
  if (sequence.documents_BS.defined()) {
    const auto document_S = sequence.documents_BS[0];
    hide(document_S.narrow(0, 0, keys) != document_S.narrow(0, block.first_position, count).unsqueeze(1));
  }
  return block;
}

void show_block(const QueryBlock& block, double scale, int64_t sequence,
                const std::function<void(const AttentionRows&)>& take) {
  const int64_t queries = block.q_THD.size(0), head_dim = block.q_THD.size(2);
  const int64_t groups = block.k_GSD.size(0), keys = block.k_GSD.size(1);
  const int64_t group_heads = block.q_THD.size(1) / groups;
  AttentionRows rows;
  rows.sequence = sequence;
  rows.first_position = block.first_position;
  for (int64_t g = 0; g < groups; ++g) {
    // The query heads of a key/value head are stacked into one product, so its keys need no copy.
    const auto q_RTD = block.q_THD.narrow(1, g * group_heads, group_heads).transpose(0, 1);
    const auto rows_ND = q_RTD.reshape({group_heads * queries, head_dim}).to(block.k_GSD.scalar_type()) * scale;
    const auto scores_RTS = at::matmul(rows_ND, block.k_GSD[g].t()).view({group_heads, queries, keys});
    if (block.hidden_TS.defined()) scores_RTS.masked_fill_(block.hidden_TS, -std::numeric_limits<double>::infinity());
    rows.first_head = g * group_heads;
    rows.weights_RTS = at::softmax(scores_RTS, -1);
    take(rows);
  }
}

}  // namespace

std::vector<QuerySpan> query_spans(const AttentionInput& input, QueryRange range, const char* operation) {
  check_served(input, operation);
  const auto length = [](const torch::Tensor& lengths_B, int64_t b, int64_t all) {
    return lengths_B.defined() ? lengths_B[b].item<int64_t>() : all;
  };
  std::vector<QuerySpan> spans;
  for (int64_t b = 0; b < input.q_BTHD.size(0); ++b) {
    QuerySpan span{.sequence = b};
    span.queries = span.end = length(input.q_lengths_B, b, input.q_BTHD.size(1));
    span.keys = length(input.kv_lengths_B, b, input.kv.k_BGSD.size(2));
    if (range == QueryRange::last_half && input.causality == Causality::causal)
      span.first = std::max<int64_t>(0, span.keys / 2 - (span.keys - span.queries));
    if (span.keys > 0) spans.push_back(span);
  }
  return spans;
}

void stream_attention(const AttentionInput& input, const QuerySpan& span,
                      const std::function<void(const AttentionRows&)>& take) {
  const torch::NoGradGuard no_gradients;
  const AttentionInput sequence = cut_sequence(input, span);
  const double scale = input.scale.value_or(1.0 / std::sqrt(static_cast<double>(input.q_BTHD.size(3))));
  const int64_t group_heads = input.q_BTHD.size(2) / input.kv.k_BGSD.size(1);
  const int64_t rows = std::max<int64_t>(1, kBlockScores / (group_heads * span.keys));
  for (int64_t at = span.first; at < span.end; at += rows)
    show_block(cut_queries(sequence, at, std::min(rows, span.end - at)), scale, span.sequence, take);
}

}  // namespace prism
