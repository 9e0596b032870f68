// Copies of what the attention of chosen layers reads: for other programs, and for analyses without the model.
//
//   CaptureProbe probe({0, 5}, decoder->config().layers);
//   context.probe = &probe;
//   decoder(tokens_BT, context);                             // one pass
//   write_tensors("layer5.safetensors", probe.captured().at(5));
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "prism/attention/layer_config.h"
#include "prism/attention/probe.h"
#include "prism/layers/named_tensor.h"

namespace prism {

/// Of each chosen layer:
///
///   residual [B, T, d_model], the residual stream before the layer; q [B, H, T, D], k [B, G, S, D] after the rotary
///   encoding; v [B, G, S, E]; inverse_frequencies, float64: the angle of each rotary pair per token, empty if the
///   layer does not rotate
class CaptureProbe : public Probe {
 public:
  /// @param chosen  layers, counted from 0. @param layers  of the observed model.
  CaptureProbe(std::vector<int64_t> chosen, const std::vector<LayerConfig>& layers);

  void observe_residual(size_t layer, const torch::Tensor& stream_BTD) override;
  void observe_attention(size_t layer, const AttentionInput& input) override;

  /// The tensors of each layer, contiguous on the CPU.
  const std::map<size_t, std::vector<NamedTensor>>& captured() const { return captured_; }

 private:
  bool wants(size_t layer) const;

  std::vector<int64_t> chosen_;
  std::vector<LayerConfig> layers_;
  std::map<size_t, std::vector<NamedTensor>> captured_;
};

}  // namespace prism
