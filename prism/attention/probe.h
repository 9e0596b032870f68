// How an analysis looks inside a model while it runs, without the model knowing of it.
//
//   class Longest : public Probe {
//     void observe_attention(size_t layer, const AttentionInput& input) override { ... }
//   };
//   Longest probe;
//   context.probe = &probe;
//   decoder(tokens_BT, context);             // every layer shows what it has, first to last
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "prism/kernels/attend.h"

namespace prism {

/// Called by each layer, numbered from 0, of each forward pass. What a probe needs later of what it is shown it must
/// copy.
class Probe {
 public:
  virtual ~Probe() = default;

  /// The residual stream [B, T, d_model] in front of a layer; in the end that behind the last one, in front of the
  /// final norm, with the number of layers for `layer`.
  virtual void observe_residual(size_t /*layer*/, const torch::Tensor& /*stream_BTD*/) {}
  /// What a layer is about to give attend(): rotated queries, all keys and values (those of a cache included), lengths
  /// and documents.
  virtual void observe_attention(size_t /*layer*/, const AttentionInput& /*input*/) {}
  /// The features inside the feed-forward part, [B, T, width], of each of its hidden layers, as the next product reads
  /// them.
  virtual void observe_hidden(size_t /*layer*/, const std::vector<torch::Tensor>& /*hidden_BTF*/) {}
};

/// Shows everything to several probes.
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

 private:
  std::vector<Probe*> probes_;
};

}  // namespace prism
