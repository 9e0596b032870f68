#include "prism/analysis/attention/compare_distances.h"

#include <algorithm>

#include "prism/core/error.h"
#include "prism/core/statistics.h"

namespace prism {
namespace {

/// One value per seed.
std::vector<double> over_seeds(const std::vector<AttentionDistance>& seeds, size_t layer,
                               double LayerDistance::*value) {
  std::vector<double> values;
  for (const auto& seed : seeds) values.push_back(seed.layers[layer].*value);
  return values;
}

void check_one_schedule(const std::vector<AttentionDistance>& seeds) {
  PRISM_CHECK(!seeds.empty(), "attention_distance", "expected the seeds of an arm; found none; name a model.");
  const auto same_heads = [](const LayerDistance& a, const LayerDistance& b) { return a.heads == b.heads; };
  for (const auto& seed : seeds) {
    PRISM_CHECK(std::equal(seed.layers.begin(), seed.layers.end(), seeds.front().layers.begin(),
                           seeds.front().layers.end(), same_heads),
                "attention_distance",
                "expected seeds of one arm to have one head schedule; found two; make them two arms.");
  }
}

}  // namespace

std::vector<ArmLayer> average_distances(const std::vector<AttentionDistance>& seeds) {
  check_one_schedule(seeds);
  std::vector<ArmLayer> rows;
  for (const auto& layer : seeds.front().layers) {
    const auto at = static_cast<size_t>(layer.layer);
    const Statistic distance = statistic(over_seeds(seeds, at, &LayerDistance::distance));
    const Statistic head_sd = statistic(over_seeds(seeds, at, &LayerDistance::distance_sd));
    rows.push_back(
        {layer.layer, layer.heads, layer.head_dim, distance.mean, distance.deviation, head_sd.mean, distance.count});
  }
  return rows;
}

std::vector<LayerComparison> compare_distances(const std::vector<AttentionDistance>& arm,
                                               const std::vector<AttentionDistance>& against) {
  const auto left = average_distances(arm), right = average_distances(against);
  PRISM_CHECK(left.size() == right.size(), "attention_distance",
              "expected arms with the same number of layers; found {} and {}; compare models of equal depth.",
              left.size(), right.size());
  const bool paired = arm.size() == against.size();
  std::vector<LayerComparison> rows;
  for (size_t i = 0; i < left.size(); ++i) {
    const Statistic difference = mean_difference(over_seeds(arm, i, &LayerDistance::distance),
                                                 over_seeds(against, i, &LayerDistance::distance), paired);
    rows.push_back({left[i].layer, left[i], right[i], difference.mean, difference.deviation, paired,
                    left[i].heads == right[i].heads});
  }
  return rows;
}

}  // namespace prism
