// Exact attention weights of an observed pass, computed a few rows at a time instead of as a full T x T matrix.
//
//   for (const auto& span : query_spans(input, QueryRange::all))
//     stream_attention(input, span, [&](const AttentionRows& rows) { sum_H += mean_of(rows.weights_RTS); });
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "prism/kernels/attention/attend.h"

namespace prism {

// T query positions, S key positions, R query heads that share a key/value head

/// The queries to measure in a sequence of n keys: all, or, if attention is causal, those at positions floor(n / 2) + 1
/// to n, which have a long past.
enum class QueryRange { all, last_half };

/// Queries [first, end) of one sequence of a batch, without padding.
struct QuerySpan {
  int64_t sequence = 0, first = 0, end = 0;
  int64_t queries = 0, keys = 0;  ///< of the whole sequence; query t is at position t + keys - queries
  int64_t count() const { return end - first; }
};

/// The span of each sequence that has keys.
/// @param operation  named by errors.
/// @throws InputError for paged keys, block masks and left-out heads.
std::vector<QuerySpan> query_spans(const AttentionInput& input, QueryRange range, const char* operation);

/// Attention weights of consecutive queries, for the query heads that share a key/value head.
struct AttentionRows {
  int64_t sequence = 0;        ///< index in the batch
  int64_t first_head = 0;      ///< first of the R query heads
  int64_t first_position = 0;  ///< position of the first query among the keys of its sequence
  torch::Tensor weights_RTS;  ///< softmax(scale q k^T) over visible keys, 0 elsewhere; causal: S ends at the last query
};

/// Passes the weights of a span to `take` in blocks of about a million scores: blocks of queries in order, and for each
/// of them one key/value head after the other.
///
/// Scores and softmax are float32 (float64 for float64 queries), on the device of the queries.
void stream_attention(const AttentionInput& input, const QuerySpan& span,
                      const std::function<void(const AttentionRows&)>& take);

}  // namespace prism
