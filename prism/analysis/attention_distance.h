// Attention distance: how many tokens back the heads of each layer look on average.
//
//   AttentionDistanceProbe probe(decoder->config().layers);
//   context.probe = &probe;
//   decoder(tokens_BT, context);                           // as often as wanted
//   for (const auto& layer : probe.result().layers) fmt::print("{} {:.1f}\n", layer.layer, layer.distance);
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "prism/analysis/head_means.h"
#include "prism/data/loader.h"
#include "prism/models/decoder.h"
#include "prism/records/run_records.h"

namespace prism {

/// Gathers, over all forward passes that it sees, the mean distance between a query and the keys that it attends to:
///
///   D_l = mean over heads i, queries t, sequences of  sum_(s <= t) A_(l,i)[t, s] |t - s|,   A = softmax(scale q k^T),
///
/// where the queries are the last half of a sequence, positions floor(n / 2) + 1 to n of n, so that each has a long
/// past to look at. 0: every query attends to its own position alone. Attention spread evenly over the past gives
/// 3 n / 8 - 1 / 4 (even n), all of it on the first token twice as much.
///
/// A sequence shorter than its row counts with the last half of its own length.
///
/// Source: arXiv 2606.27449, section 4.1, equation (1), where all sequences are full windows of one document.
class AttentionDistanceProbe : public HeadMeansProbe {
 public:
  /// @param layers  of the model that is looked at.
  explicit AttentionDistanceProbe(const std::vector<LayerConfig>& layers);

  /// Of the passes so far, which were whole. @throws InputError if no query counted.
  AttentionDistance result() const;
};

/// Attention distance over the windows of `windows`, from where it stands.
///
/// @param windows      unshuffled; with the document mask that the model was trained with.
/// @param sequences    windows to look at, at least 1; fewer if there are no more.
/// @param on_progress  if given, called after every batch with the number of sequences so far.
/// @return             nothing if a stop signal came (core/stop.h).
std::optional<AttentionDistance> measure_attention_distance(Decoder decoder, WindowLoader windows, int64_t sequences,
                                                            const std::function<void(int64_t)>& on_progress = {});

}  // namespace prism
