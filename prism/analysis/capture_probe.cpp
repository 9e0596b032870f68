#include "prism/analysis/capture_probe.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <utility>

#include "prism/attention/rotary.h"
#include "prism/kernels/rotary_pairs.h"

namespace prism {

CaptureProbe::CaptureProbe(std::vector<int64_t> chosen, const std::vector<LayerConfig>& layers)
    : chosen_(std::move(chosen)), layers_(layers) {}

void CaptureProbe::observe_residual(size_t layer, const torch::Tensor& stream_BTD) {
  if (wants(layer)) captured_[layer].push_back({"residual", stream_BTD.cpu().contiguous()});
}

void CaptureProbe::observe_attention(size_t layer, const AttentionInput& input) {
  if (!wants(layer)) return;
  auto& tensors = captured_[layer];
  tensors.push_back({"q", input.q_BTHD.transpose(1, 2).cpu().contiguous()});
  tensors.push_back({"k", input.kv.k_BGSD.cpu().contiguous()});
  tensors.push_back({"v", input.kv.v_BGSE.cpu().contiguous()});
  // A file without inverse_frequencies would be read as one of plain rotary heads.
  const auto& config = layers_.at(layer);
  const auto angles =
      config.rotary.turns() ? rotary_pairs(config.rotary, config.head_dim).angles : std::vector<double>();
  tensors.push_back({"inverse_frequencies", torch::tensor(angles, torch::kDouble)});
}

bool CaptureProbe::wants(size_t layer) const {
  return std::find(chosen_.begin(), chosen_.end(), static_cast<int64_t>(layer)) != chosen_.end();
}

}  // namespace prism
