// The size of the residual stream before each layer, and the dead units of the feed-forward parts.
//
//   ActivationProbe probe;
//   context.probe = &probe;
//   decoder(tokens_BT, context);                           // any number of passes
//   for (const auto& layer : probe.result()) fmt::print("{} {:.2f}\n", layer.layer, layer.residual_rms);
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "prism/attention/probe.h"
#include "prism/records/run_records.h"

namespace prism {

/// Accumulates over all observed forward passes. A unit is dead if its magnitude never exceeds 10^-6 of the root mean
/// square of its layer's units. With ReLU, such a unit is 0 for every token.
class ActivationProbe : public Probe {
 public:
  void observe_residual(size_t layer, const torch::Tensor& stream_BTD) override;
  void observe_hidden(size_t layer, const std::vector<torch::Tensor>& hidden_BTF) override;

  /// All layers from the first to the last, then one entry for the input of the LM head.
  std::vector<LayerActivations> result() const;

 private:
  struct Squares {
    double sum = 0;
    int64_t count = 0;
    void add(const torch::Tensor& values);
    double root_mean() const;
  };
  struct Units {
    torch::Tensor largest_F;  ///< largest magnitude of each unit
    Squares squares;
  };
  struct Layer {
    Squares residual;
    std::vector<Units> hidden;
  };
  Layer& at(size_t layer);

  std::vector<Layer> layers_;
};

/// The reader of the residual stream at `layer`: "layer 3", or "the LM head" after the last of `layers`.
std::string stream_reader(size_t layer, size_t layers);

/// Finds the first value of a forward pass that is not finite.
class FiniteProbe : public Probe {
 public:
  /// @param layers  number of layers of the model.
  explicit FiniteProbe(size_t layers) : layers_(layers) {}

  void observe_residual(size_t layer, const torch::Tensor& stream_BTD) override;
  void observe_attention(size_t layer, const AttentionInput& input) override;
  void observe_hidden(size_t layer, const std::vector<torch::Tensor>& hidden_BTF) override;

  /// The first place with a value that is not finite, such as "the residual stream before layer 2"; empty if none.
  const std::string& place() const { return place_; }

 private:
  void look(const torch::Tensor& values, const char* what, size_t layer);

  size_t layers_;
  std::string place_;
};

/// The place of the first value that is not finite in a forward pass: in a layer or in the logits. Empty if all values
/// are finite.
/// @param layers  number of layers of the model.
/// @param loss    runs the forward pass with the given probe and returns its loss; called without gradients.
std::string place_in_forward(size_t layers, const std::function<torch::Tensor(Probe&)>& loss);

}  // namespace prism
