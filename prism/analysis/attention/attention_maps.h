// Attention maps: the weights of chosen heads over a single, short sequence.
//
//   AttentionMapProbe probe([](size_t layer, int64_t heads) { return std::vector<int64_t>{0}; });   // head 0 of each
//   context.probe = &probe;
//   decoder(tokens_1T, context);
//   probe.maps()[3].weights_TS                             // layer 3
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "prism/attention/probe.h"

namespace prism {

/// The heads of a layer that are mapped, given the layer and its number of heads.
using HeadChoice = std::function<std::vector<int64_t>(size_t layer, int64_t heads)>;

struct AttentionMap {
  int64_t layer = 0, head = 0;
  torch::Tensor weights_TS;  ///< softmax(scale q k^T), float64 on the CPU; 0 for keys that a query does not see
  bool is_causal = true;
};

/// Keeps the weights of the chosen heads of a pass over one sequence.
class AttentionMapProbe : public Probe {
 public:
  explicit AttentionMapProbe(HeadChoice choose) : choose_(std::move(choose)) {}

  /// @throws InputError as query_spans().
  void observe_attention(size_t layer, const AttentionInput& input) override;

  /// Layer by layer, in the order in which a layer's heads were chosen.
  const std::vector<AttentionMap>& maps() const { return maps_; }

 private:
  HeadChoice choose_;
  std::vector<AttentionMap> maps_;
};

/// The weights of each query: of the keys up to it if attention is causal, else of all.
std::vector<std::vector<double>> rows_of(const AttentionMap& map);

}  // namespace prism
