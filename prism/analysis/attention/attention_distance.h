// Attention distance: how many tokens back the heads of each layer look on average.
//
//   AttentionDistanceProbe probe(decoder->config().layers);
//   context.probe = &probe;
//   decoder(tokens_BT, context);                           // any number of passes
//   for (const auto& layer : probe.result().layers) fmt::print("{} {:.1f}\n", layer.layer, layer.distance);
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "prism/analysis/attention/head_means.h"
#include "prism/data/loader.h"
#include "prism/models/decoder.h"
#include "prism/records/run_records.h"

namespace prism {

/// The mean distance between a query and the keys it attends to, over all observed forward passes:
///
///   D_l = mean over heads i, queries t, sequences of  sum_(s <= t) A_(l,i)[t, s] |t - s|,   A = softmax(scale q k^T),
///
/// where the queries are the last half of a sequence, positions floor(n / 2) + 1 to n of n, so that each has a long
/// past. 0: every query attends to its own position only. Attention spread evenly over the past gives
/// 3 n / 8 - 1 / 4 (even n); attention to the first token only gives twice as much.
///
/// For a sequence shorter than its row, n is the sequence's own length.
///
/// Source: arXiv 2606.27449, section 4.1, equation (1), where all sequences are full windows of one document.
class AttentionDistanceProbe : public HeadMeansProbe {
 public:
  /// @param layers  the layers of the observed model.
  explicit AttentionDistanceProbe(const std::vector<LayerConfig>& layers);

  /// The distances over the passes so far, all of which must be complete. @throws InputError if no query was observed.
  AttentionDistance result() const;
};

/// Attention distance over the remaining windows of `windows`.
///
/// @param windows      unshuffled; with the document mask that the model was trained with.
/// @param sequences    number of windows to measure, at least 1; fewer if fewer remain.
/// @param on_progress  if given, called after every batch with the number of sequences so far.
/// @return             std::nullopt if a stop signal arrived (core/stop.h).
std::optional<AttentionDistance> measure_attention_distance(Decoder decoder, WindowLoader windows, int64_t sequences,
                                                            const std::function<void(int64_t)>& on_progress = {});

}  // namespace prism
