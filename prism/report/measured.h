// What was measured on the trained models, over seeds and against the baseline: how far attention reaches in each
// layer, and the loss on whole texts.
//
//   for (const auto& layer : distance_differences(group, baseline)) if (layer.other_heads) ...
//   const auto gap = paired_difference(text_losses(group, text), text_losses(baseline, text));
#pragma once

#include <string>
#include <vector>

#include "prism/report/compare.h"

namespace prism {

struct MeanDistance {
  int64_t layer = 0;   ///< from 0
  Statistic distance;  ///< mean distance that attention looks back, in tokens
};

/// Of each layer that every counted run with any distances has; ascending. Empty: no run has some.
std::vector<MeanDistance> layer_distances(const RunGroup& group);

struct LayerDifference {
  int64_t layer = 0;
  bool other_heads = false;   ///< the layer's head count is not the baseline's
  PairedDifference distance;  ///< group minus baseline, in tokens
};

/// Of each layer that both have; ascending.
std::vector<LayerDifference> distance_differences(const RunGroup& group, const RunGroup& baseline);

/// The mean of the distances over some layers, for each counted run that has them all.
std::vector<SeedValue> mean_distances(const RunGroup& group, const std::vector<int64_t>& layers);

/// The names of all texts that some run has a loss for, in the order of first appearance.
std::vector<std::string> measured_texts(const Comparison& comparison);

/// Nats per token of the text for each counted run that has it.
std::vector<SeedValue> text_losses(const RunGroup& group, const std::string& text);

}  // namespace prism
