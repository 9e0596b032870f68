// Exact attention weights of what a probe sees, some rows at a time: never all T x T of them.
//
//   for (const auto& span : query_spans(input, QueryRange::all))
//     stream_attention(input, span, [&](const AttentionRows& rows) { sum_H += mean_of(rows.weights_RTS); });
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "prism/kernels/attend.h"

namespace prism {

// T query positions, S key positions, R query heads of a key/value head

/// Which queries of a sequence of n keys are looked at: all, or those at positions floor(n / 2) + 1 to n, which have a
/// long past.
enum class QueryRange { all, last_half };

/// Queries [first, end) of a sequence of a batch, padding left out.
struct QuerySpan {
  int64_t sequence = 0, first = 0, end = 0;
  int64_t queries = 0, keys = 0;  ///< of the whole sequence: query t stands at position t + keys - queries
  int64_t count() const { return end - first; }
};

/// Of every sequence that has keys.
/// @throws InputError naming `operation` for attention that is not causal, pages, block masks, or heads that are left
///         out.
std::vector<QuerySpan> query_spans(const AttentionInput& input, QueryRange range, const char* operation);

/// Weights of some consecutive queries of the query heads that share a key/value head.
struct AttentionRows {
  int64_t sequence = 0;        ///< of the batch
  int64_t first_head = 0;      ///< of the R
  int64_t first_position = 0;  ///< of the T queries among the keys of their sequence
  torch::Tensor weights_RTS;   ///< softmax(scale q k^T) of visible keys, 0 elsewhere; S keys, up to the last query
};

/// Shows the weights of a span, head after head and row after row, of about a million scores at a time.
///
/// Scores and softmax are float32 (float64 for float64 queries), on the device of the queries.
void stream_attention(const AttentionInput& input, const QuerySpan& span,
                      const std::function<void(const AttentionRows&)>& take);

}  // namespace prism
