#include "prism/analysis/attention/head_means.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <utility>

#include "prism/core/error.h"
#include "prism/kernels/to_vector.h"

namespace prism {

HeadMeansProbe::HeadMeansProbe(const std::vector<LayerConfig>& layers, QueryRange range,
                               std::vector<RowMeasure> measures, const char* operation)
    : layers_(layers), range_(range), measures_(std::move(measures)), operation_(operation), sums_(measures_.size()) {
  for (auto& sums : sums_)
    for (const auto& layer : layers_) sums.push_back(torch::zeros({layer.heads}, torch::kDouble));
}

void HeadMeansProbe::observe_attention(size_t layer, const AttentionInput& input) {
  const auto spans = query_spans(input, range_, operation_);
  PRISM_ASSERT(layer < layers_.size() && input.q_BTHD.size(2) == layers_[layer].heads, operation_,
               "layer {} with {} heads is none of this model's.", layer, input.q_BTHD.size(2));
  const bool ends_the_pass = layer + 1 == layers_.size();
  for (const auto& span : spans) {
    stream_attention(input, span, [&](const AttentionRows& rows) {
      for (size_t i = 0; i < measures_.size(); ++i) {
        const auto value_RT = measures_[i](rows);
        sums_[i][layer].narrow(0, rows.first_head, value_RT.size(0)) +=
            value_RT.sum(1, /*keepdim=*/false, torch::kDouble).cpu();
      }
    });
    if (!ends_the_pass) continue;
    ++sequences_;
    context_ = std::max(context_, span.keys);
    queries_ += span.count();
  }
}

std::vector<std::vector<double>> HeadMeansProbe::means(size_t measure) const {
  PRISM_CHECK(queries_ > 0, operation_, "expected sequences to measure; found none; run the model on some.");
  std::vector<std::vector<double>> layers;
  for (const auto& sum_H : sums_.at(measure)) layers.push_back(to_doubles(sum_H / static_cast<double>(queries_)));
  return layers;
}

}  // namespace prism
