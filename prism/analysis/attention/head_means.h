// Means over queries of measures of the attention weights, for each head.
//
//   HeadMeansProbe probe(decoder->config().layers, QueryRange::all, {entropy_of_rows}, "entropy");
//   context.probe = &probe;
//   decoder(tokens_BT, context);                           // any number of passes
//   probe.means(0)[2][1];                                  // layer 2, head 1, in nats
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "prism/analysis/attention/attention_rows.h"
#include "prism/attention/layer_config.h"
#include "prism/attention/probe.h"

namespace prism {

/// Maps attention weights to one number for each query of each head, [R, T].
using RowMeasure = std::function<torch::Tensor(const AttentionRows&)>;

/// Accumulates over all observed forward passes. Every query in the range has the same weight; padding is left out.
/// A document boundary inside a row limits which keys a query sees, but does not change which queries are in the range.
/// With a cache, the sequence is all keys so far.
///
/// Weights are computed in blocks of a few MiB, never as a full T x T matrix (attention_rows.h). Sums over queries are
/// float64.
class HeadMeansProbe : public Probe {
 public:
  /// @param layers     the layers of the observed model.
  /// @param operation  named by errors.
  HeadMeansProbe(const std::vector<LayerConfig>& layers, QueryRange range, std::vector<RowMeasure> measures,
                 const char* operation);

  /// @throws InputError as query_spans().
  void observe_attention(size_t layer, const AttentionInput& input) override;

  /// The mean of a measure for every layer and head over the passes so far, all of which must be complete.
  /// @throws InputError if no query was observed.
  std::vector<std::vector<double>> means(size_t measure) const;
  const std::vector<LayerConfig>& layers() const { return layers_; }
  int64_t sequences() const { return sequences_; }
  int64_t context() const { return context_; }  ///< tokens of the longest sequence
  int64_t queries() const { return queries_; }

 private:
  std::vector<LayerConfig> layers_;
  QueryRange range_;
  std::vector<RowMeasure> measures_;
  const char* operation_;
  std::vector<std::vector<torch::Tensor>> sums_;  ///< for each measure and layer [H], float64, on the CPU
  int64_t sequences_ = 0, context_ = 0, queries_ = 0;
};

}  // namespace prism
