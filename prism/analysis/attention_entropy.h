// Attention entropy: how evenly the heads of each layer spread their weights.
//
//   AttentionEntropyProbe probe(decoder->config().layers);
//   context.probe = &probe;
//   decoder(tokens_BT, context);                           // as often as wanted
//   for (const auto& layer : probe.result()) fmt::print("{} {:.3f}\n", layer.layer, layer.entropy);
#pragma once

#include <cstdint>
#include <vector>

#include "prism/analysis/head_means.h"
#include "prism/records/run_records.h"

namespace prism {

/// Gathers, over all forward passes that it sees, for each head the mean over queries of
///
///   H[t] = - sum_(s <= t) A[t, s] ln A[t, s],   A = softmax(scale q k^T),   0 ln 0 = 0,  in nats.
///
/// 0: every query looks at one key alone; ln t: evenly at all of t keys, so that a head which does has a mean of
/// ln(n!) / n over a sequence of n. Source: "multi-head attention" (the ladder), whose figures are such means.
class AttentionEntropyProbe : public HeadMeansProbe {
 public:
  /// @param layers  of the model that is looked at.
  explicit AttentionEntropyProbe(const std::vector<LayerConfig>& layers);

  /// Of the passes so far, which were whole. @throws InputError if no query counted.
  std::vector<LayerEntropy> result() const;
};

}  // namespace prism
