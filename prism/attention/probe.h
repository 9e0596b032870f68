// Probes let an analysis read a model's activations during a forward pass.
//
//   class Longest : public Probe {
//     void observe_attention(size_t layer, const AttentionInput& input) override { ... }
//   };
//   Longest probe;
//   context.probe = &probe;
//   decoder(tokens_BT, context);             // calls the probe in every layer, first to last
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "prism/kernels/attention/attend.h"

namespace prism {

/// Each layer, numbered from 0, calls the probe in each forward pass. A probe must copy whatever it needs later.
class Probe {
 public:
  virtual ~Probe() = default;

  /// The residual stream [B, T, d_model] before a layer. A last call, with the number of layers as `layer`, shows the
  /// stream after the last layer and before the final norm.
  virtual void observe_residual(size_t /*layer*/, const torch::Tensor& /*stream_BTD*/) {}
  /// The input that a layer passes to attend(): rotated queries, all keys and values (cached ones included), lengths
  /// and documents.
  virtual void observe_attention(size_t /*layer*/, const AttentionInput& /*input*/) {}
  /// The features [B, T, width] of each hidden layer of the feed-forward part, after the activation.
  virtual void observe_hidden(size_t /*layer*/, const std::vector<torch::Tensor>& /*hidden_BTF*/) {}
  /// The input and the output of the feed-forward part, [N, d_model], for the N tokens that are not padding; called
  /// after observe_hidden().
  virtual void observe_feed_forward(size_t /*layer*/, const torch::Tensor& /*input_ND*/,
                                    const torch::Tensor& /*output_ND*/) {}
};

/// Forwards every call to several probes.
class Probes : public Probe {
 public:
  explicit Probes(std::vector<Probe*> probes) : probes_(std::move(probes)) {}

  void observe_residual(size_t layer, const torch::Tensor& stream_BTD) override {
    for (auto* probe : probes_) probe->observe_residual(layer, stream_BTD);
  }
  void observe_attention(size_t layer, const AttentionInput& input) override {
    for (auto* probe : probes_) probe->observe_attention(layer, input);
  }
  void observe_hidden(size_t layer, const std::vector<torch::Tensor>& hidden_BTF) override {
    for (auto* probe : probes_) probe->observe_hidden(layer, hidden_BTF);
  }
  void observe_feed_forward(size_t layer, const torch::Tensor& input_ND, const torch::Tensor& output_ND) override {
    for (auto* probe : probes_) probe->observe_feed_forward(layer, input_ND, output_ND);
  }

 private:
  std::vector<Probe*> probes_;
};

}  // namespace prism
