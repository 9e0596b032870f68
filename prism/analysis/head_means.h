// Means over queries of what can be said of a head's attention weights, head by head.
//
//   HeadMeansProbe probe(decoder->config().layers, QueryRange::all, {entropy_of_rows}, "entropy");
//   context.probe = &probe;
//   decoder(tokens_BT, context);                           // as often as wanted
//   probe.means(0)[2][1];                                  // of layer 2, head 1, in nats
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "prism/analysis/attention_rows.h"
#include "prism/attention/layer_config.h"
#include "prism/attention/probe.h"

namespace prism {

/// Weights in, a number for each query of each head out: [R, T].
using RowMeasure = std::function<torch::Tensor(const AttentionRows&)>;

/// Gathers over all forward passes that it sees. Every query that counts has the same weight; of a sequence shorter
/// than its row only its own count. Documents inside a row end a query's past, but do not change which queries count.
/// Behind a cache the keys so far are the sequence.
///
/// Weights exist in blocks of a few MiB, never all T x T of them (attention_rows.h). Sums over queries are float64.
class HeadMeansProbe : public Probe {
 public:
  /// @param layers     of the model that is looked at.
  /// @param operation  that errors name.
  HeadMeansProbe(const std::vector<LayerConfig>& layers, QueryRange range, std::vector<RowMeasure> measures,
                 const char* operation);

  /// @throws InputError as query_spans().
  void observe_attention(size_t layer, const AttentionInput& input) override;

  /// Of every head of every layer, over the passes so far, which were whole. @throws InputError if no query counted.
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
  std::vector<std::vector<torch::Tensor>> sums_;  ///< of each measure and layer [H], float64, on the CPU
  int64_t sequences_ = 0, context_ = 0, queries_ = 0;
};

}  // namespace prism
