#include "prism/report/compare/measured.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace prism {
namespace {

struct LayerValues {
  int64_t heads = 0;
  std::vector<SeedValue> distances;
};

/// The values of the counted runs for each layer, for layers that all runs with any values have.
std::map<int64_t, LayerValues> layer_values(const RunGroup& group) {
  std::map<int64_t, LayerValues> layers;
  size_t measured = 0;
  for (const Run* run : counted_runs(group)) {
    measured += run->distances.empty() ? 0 : 1;
    for (const auto& layer : run->distances) {
      layers[layer.layer].heads = layer.heads;
      layers[layer.layer].distances.push_back({run->seed, layer.distance});
    }
  }
  std::erase_if(layers, [&](const auto& entry) { return entry.second.distances.size() < measured; });
  return layers;
}

}  // namespace

std::vector<MeanDistance> layer_distances(const RunGroup& group) {
  std::vector<MeanDistance> result;
  for (const auto& [layer, values] : layer_values(group)) result.push_back({layer, statistic_of(values.distances)});
  return result;
}

std::vector<LayerDifference> distance_differences(const RunGroup& group, const RunGroup& baseline) {
  const auto own = layer_values(group), other = layer_values(baseline);
  std::vector<LayerDifference> result;
  for (const auto& [layer, values] : own) {
    const auto partner = other.find(layer);
    if (partner == other.end()) continue;
    result.push_back(
        {layer, values.heads != partner->second.heads, paired_difference(values.distances, partner->second.distances)});
  }
  return result;
}

std::vector<SeedValue> mean_distances(const RunGroup& group, const std::vector<int64_t>& layers) {
  std::vector<SeedValue> means;
  for (const Run* run : counted_runs(group)) {
    std::vector<double> found;
    for (const auto& distance : run->distances)
      if (std::find(layers.begin(), layers.end(), distance.layer) != layers.end()) found.push_back(distance.distance);
    if (!found.empty() && found.size() == layers.size()) means.push_back({run->seed, statistic(found).mean});
  }
  return means;
}

std::vector<std::string> measured_texts(const Comparison& comparison) {
  std::vector<std::string> texts;
  for (const auto& group : comparison.groups) {
    for (const Run* run : counted_runs(group)) {
      for (const auto& loss : run->text_losses) {
        if (std::find(texts.begin(), texts.end(), loss.text) == texts.end()) texts.push_back(loss.text);
      }
    }
  }
  return texts;
}

std::vector<SeedValue> text_losses(const RunGroup& group, const std::string& text) {
  std::vector<SeedValue> values;
  for (const Run* run : counted_runs(group)) {
    for (const auto& loss : run->text_losses) {
      if (loss.text == text) values.push_back({run->seed, loss.nats / static_cast<double>(loss.tokens)});
    }
  }
  return values;
}

std::vector<SeedValue> test_scores(const RunGroup& group,
                                   const std::function<double(const ClassificationRecord&)>& score) {
  std::vector<SeedValue> values;
  for (const Run* run : counted_runs(group)) {
    const auto& all = run->classifications;
    const auto found = std::find_if(all.rbegin(), all.rend(), [](const auto& one) { return one.split == "test"; });
    if (found == all.rend()) continue;
    if (const double value = score(*found); std::isfinite(value)) values.push_back({run->seed, value});
  }
  return values;
}

}  // namespace prism
