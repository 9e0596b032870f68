// How large the residual stream is in front of each layer, and which units of the feed-forward parts never answer.
//
//   ActivationProbe probe;
//   context.probe = &probe;
//   decoder(tokens_BT, context);                           // as often as wanted
//   for (const auto& layer : probe.result()) fmt::print("{} {:.2f}\n", layer.layer, layer.residual_rms);
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "prism/attention/probe.h"
#include "prism/records/run_records.h"

namespace prism {

/// Gathers over all forward passes that it sees. A unit is dead if its magnitude never exceeds 10^-6 of the root mean
/// square of its layer's units: with ReLU one that is 0 for every token.
class ActivationProbe : public Probe {
 public:
  void observe_residual(size_t layer, const torch::Tensor& stream_BTD) override;
  void observe_hidden(size_t layer, const std::vector<torch::Tensor>& hidden_BTF) override;

  /// First to last, and one more for what the head reads.
  std::vector<LayerActivations> result() const;

 private:
  struct Squares {
    double sum = 0;
    int64_t count = 0;
    void add(const torch::Tensor& values);
    double root_mean() const;
  };
  struct Units {
    torch::Tensor largest_F;  ///< magnitude
    Squares squares;
  };
  struct Layer {
    Squares residual;
    std::vector<Units> hidden;
  };
  Layer& at(size_t layer);

  std::vector<Layer> layers_;
};

/// Who reads the residual stream there: "layer 3", or "the LM head" behind the last of `layers`.
std::string stream_reader(size_t layer, size_t layers);

/// Finds where a forward pass stopped giving numbers.
class FiniteProbe : public Probe {
 public:
  /// @param layers  of the model.
  explicit FiniteProbe(size_t layers) : layers_(layers) {}

  void observe_residual(size_t layer, const torch::Tensor& stream_BTD) override;
  void observe_attention(size_t layer, const AttentionInput& input) override;
  void observe_hidden(size_t layer, const std::vector<torch::Tensor>& hidden_BTF) override;

  /// The first place with a value that is not finite, such as "the residual stream in front of layer 2"; empty: none.
  const std::string& place() const { return place_; }

 private:
  void look(const torch::Tensor& values, const char* what, size_t layer);

  size_t layers_;
  std::string place_;
};

/// Where the first value that is not finite turns up in a forward pass: in a layer, or in the logits; empty: nowhere.
/// @param layers  of the model.
/// @param loss    makes the pass, which the probe looks at, without gradients, and gives its loss.
std::string place_in_forward(size_t layers, const std::function<torch::Tensor(Probe&)>& loss);

}  // namespace prism
