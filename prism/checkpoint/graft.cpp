#include "prism/checkpoint/graft.h"

#include <map>
#include <string>

#include "prism/checkpoint/weight_map.h"
#include "prism/core/error.h"

namespace prism {

ModelConfig graft_config(ModelConfig config) {
  bool found = false;
  for (auto& layer : config.layers) {
    if (layer.ffn.kind != "swiglu") continue;
    layer.ffn.kind = "g2lu";
    layer.ffn.gate_bias = found = true;
  }
  PRISM_CHECK(
      found, "convert",
      "expected a model with feed-forward parts of kind swiglu to graft g2lu onto; found none in its layers; name "
      "another model.");
  return config;
}

void copy_grafted(const Trunk& model, const Trunk& grafted) {
  const torch::NoGradGuard no_gradients;
  std::map<std::string, torch::Tensor> given;
  for (const auto& [name, tensor] : file_tensors(model.weights())) given[name] = tensor;
  for (const auto& [name, tensor] : file_tensors(grafted.weights())) {
    if (const auto found = given.find(name); found != given.end()) {
      tensor.copy_(found->second);
    } else {
      PRISM_ASSERT(name.find("inner_gate_proj") != std::string::npos, "convert", "no values for {}", name);
      name.ends_with(".bias") ? tensor.fill_(kOpenGate) : tensor.zero_();
    }
  }
}

}  // namespace prism
