// Attention entropy: how evenly the heads of each layer spread their attention weights.
//
//   AttentionEntropyProbe probe(decoder->config().layers);
//   context.probe = &probe;
//   decoder(tokens_BT, context);                           // any number of passes
//   for (const auto& layer : probe.result()) fmt::print("{} {:.3f}\n", layer.layer, layer.entropy);
#pragma once

#include <cstdint>
#include <vector>

#include "prism/analysis/attention/head_means.h"
#include "prism/records/run_records.h"

namespace prism {

/// For each head, the mean over the queries of all observed forward passes of
///
///   H[t] = - sum_(s <= t) A[t, s] ln A[t, s],   A = softmax(scale q k^T),   0 ln 0 = 0,  in nats.
///
/// 0: the query attends to a single key. ln t: it attends evenly to all of t keys; a head that always does has a mean
/// of ln(n!) / n over a sequence of n. Source: "multi-head attention" (the ladder), whose figures are such means.
class AttentionEntropyProbe : public HeadMeansProbe {
 public:
  /// @param layers  the layers of the observed model.
  explicit AttentionEntropyProbe(const std::vector<LayerConfig>& layers);

  /// The entropies over the passes so far, all of which must be complete. @throws InputError if no query was observed.
  std::vector<LayerEntropy> result() const;
};

}  // namespace prism
