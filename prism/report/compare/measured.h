// Final measurements of the trained models, over seeds and against the baseline: the attention distance of each layer,
// the loss on whole texts, and the scores of classifiers on the test split.
//
//   for (const auto& layer : distance_differences(group, baseline)) if (layer.other_heads) ...
//   const auto gap = paired_difference(text_losses(group, text), text_losses(baseline, text));
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "prism/report/compare/compare.h"

namespace prism {

struct MeanDistance {
  int64_t layer = 0;   ///< from 0
  Statistic distance;  ///< mean attention distance, in tokens
};

/// Ascending, for each layer that every counted run with any distances has. Empty if no run has any.
std::vector<MeanDistance> layer_distances(const RunGroup& group);

struct LayerDifference {
  int64_t layer = 0;
  bool other_heads = false;   ///< the number of heads differs from the baseline's
  PairedDifference distance;  ///< group minus baseline, in tokens
};

/// Ascending, for each layer that both have.
std::vector<LayerDifference> distance_differences(const RunGroup& group, const RunGroup& baseline);

/// The mean distance over some layers, for each counted run that has all of these layers.
std::vector<SeedValue> mean_distances(const RunGroup& group, const std::vector<int64_t>& layers);

/// The names of all texts for which some run has a loss, in order of first appearance.
std::vector<std::string> measured_texts(const Comparison& comparison);

/// Loss on the text in nats per token, for each counted run that has it.
std::vector<SeedValue> text_losses(const RunGroup& group, const std::string& text);

/// A score on the test split, for each counted run that labelled it; NaN values are left out.
std::vector<SeedValue> test_scores(const RunGroup& group,
                                   const std::function<double(const ClassificationRecord&)>& score);

}  // namespace prism
