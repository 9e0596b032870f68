// Layers that share projections: how alike their feed-forward parts' outputs are, and whether it matters which layers
// share.
//
//   TwinProbe probe(decoder->config().layers);
//   context.probe = &probe;
//   decoder(tokens_BT, context);                                  // any number of passes
//   for (const auto& twins : probe.result()) fmt::print("{} {} {:.3f}\n", twins.owner, twins.layer, twins.cka);
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "prism/attention/layer_config.h"
#include "prism/attention/probe.h"
#include "prism/models/trunk.h"

namespace prism {

struct TwinSimilarity {
  int64_t layer = 0, owner = 0;
  double cka = 0;
  template <class Visitor>
  void visit(Visitor& v) {
    v("layer", layer, "layer that uses another layer's projections, counted from 0");
    v("owner", owner, "layer whose projections it uses");
    v("cka", cka, "centered kernel alignment of the outputs of their feed-forward parts: 0 to 1");
  }
};

/// Accumulates linear centered kernel alignment. For features x_n and y_n of tokens n, minus their means:
///
///   CKA = |sum_n y_n x_n^T|_F^2 / (|sum_n x_n x_n^T|_F |sum_n y_n y_n^T|_F)
///
/// 1 if y is x up to a rotation and a factor. Source: arXiv 1905.00414, section 3.
class KernelAlignment {
 public:
  /// @param x_ND, y_ND  features of the same tokens.
  void add(const torch::Tensor& x_ND, const torch::Tensor& y_ND);
  /// NaN if one of them is constant.
  double value() const;

 private:
  int64_t count_ = 0;
  torch::Tensor sum_x_, sum_y_, xx_, yy_, yx_;  ///< float64
};

/// Measures the alignment of every layer that shares projections with its owner.
class TwinProbe : public Probe {
 public:
  explicit TwinProbe(const std::vector<LayerConfig>& layers);

  void observe_feed_forward(size_t layer, const torch::Tensor& input_ND, const torch::Tensor& output_ND) override;
  std::vector<TwinSimilarity> result() const;

 private:
  std::vector<int64_t> owner_of_;
  std::map<int64_t, torch::Tensor> outputs_;  ///< of this pass's owners
  std::map<int64_t, KernelAlignment> alignments_;
};

/// The losses of a model whose layers use the projections of other owners than they were trained with.
struct PermutedTwins {
  double loss = 0;                      ///< with their own
  std::vector<double> permuted_losses;  ///< one for each permutation
};

/// Measures the loss while the layers that share projections use those of other owners: the owners change places in
/// random cycles through all of them, at most `permutations` and each at most once. The model is as before afterwards.
/// @param loss  of the model on the input.
/// @return      std::nullopt if there are fewer than two owners, or if their feed-forward parts differ in kind or
/// width.
std::optional<PermutedTwins> permute_twins(const Trunk& model, int64_t permutations, uint64_t seed,
                                           const std::function<double()>& loss);

}  // namespace prism
