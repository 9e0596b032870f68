#include "prism/attention/prefill_meter.h"

#include "prism/core/error.h"

namespace prism {

HeadStatistics LayerPrefill::all_heads() const {
  return sum_of(heads);
}

PrefillMeter::PrefillMeter(const PrefillMeterOptions& options) : options_(options) {
  PRISM_CHECK(options.recall_rows >= 0, "prefill", "expected recall of at least 0 rows; found {}; raise it.",
              options.recall_rows);
}

void PrefillMeter::before_select() {
  timer_.restart();
}

void PrefillMeter::before_attend(size_t layer) {
  if (layer >= layers_.size()) layers_.resize(layer + 1);
  layers_[layer].select_seconds += timer_.seconds();
  timer_.restart();
}

void PrefillMeter::after_attend(size_t layer, const SelectorInput& seen, const BlockMask& mask) {
  auto& record = layers_[layer];
  record.attend_seconds += timer_.seconds();
  timer_.restart();
  const auto heads = measure_mask(seen, mask, options_.recall_rows);
  record.heads.resize(heads.size());
  for (size_t h = 0; h < heads.size(); ++h) record.heads[h] += heads[h];
  record.measure_seconds += timer_.seconds();
}

LayerPrefill all_layers(const std::vector<LayerPrefill>& layers) {
  LayerPrefill sum;
  sum.heads.resize(1);
  for (const auto& layer : layers) {
    sum.heads[0] += layer.all_heads();
    sum.select_seconds += layer.select_seconds;
    sum.attend_seconds += layer.attend_seconds;
    sum.measure_seconds += layer.measure_seconds;
  }
  return sum;
}

}  // namespace prism
