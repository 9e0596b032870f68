// Attention over the kept heads alone: each kept head of each sequence becomes one row of a batch.
//
//   const PackedHeads packed(kept_BH, layer);                      // which rows there are
//   auto fused_PTF = packed.project(x_BTD, panels.of(qkv, layer, x_BTD.scalar_type()));
//   ...                                                            // attend() over P rows of one head
//   auto out_BTD = packed.join(out_PTRE, weight_BH, out);
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "prism/attention/layer_config.h"
#include "prism/layers/linear.h"

namespace prism {

// B batch, T positions, D d_model, H heads, G key/value heads, R = H / G query heads of each, E head width,
// P rows: kept pairs of a sequence and a key/value head, F = (R + 2) E

/// The rows of a fused projection, regrouped head by head: the query rows of group g, then its key and value rows.
class HeadPanels {
 public:
  struct Panels {
    torch::Tensor weight_GFD;  ///< in the dtype of products
    torch::Tensor bias_GF;     ///< in the weights' dtype; undefined without a bias
  };
  /// Regroups the weight when it is first needed in this dtype, and again when its values have changed. Not for calls
  /// from several threads at once.
  const Panels& of(const Linear& qkv, const LayerConfig& layer, torch::ScalarType type);

 private:
  /// Identifies the values that the panels were made from.
  struct Key {
    const void *weight = nullptr, *bias = nullptr;
    int64_t weight_version = -1, bias_version = -1;
    torch::ScalarType type = torch::kFloat;
    bool operator==(const Key&) const = default;
  };
  Panels panels_;
  Key key_;
};

/// The rows of one batch. With grouped queries, a key/value head and all its query heads are computed if one of them is
/// kept. Without gradients.
class PackedHeads {
 public:
  /// @param kept_BH  bool, the heads to compute.
  PackedHeads(const torch::Tensor& kept_BH, const LayerConfig& layer);

  /// Number of rows, P.
  int64_t rows() const { return static_cast<int64_t>(sequence_.size()); }

  /// Queries, keys and values of each row, [P, T, F] in x's dtype.
  torch::Tensor project(const torch::Tensor& x_BTD, const HeadPanels::Panels& panels) const;
  /// The rows of `values` that belong to each row's sequence; an undefined tensor stays undefined.
  torch::Tensor of_sequences(const torch::Tensor& values_B) const;
  /// The sum over each sequence's rows of their outputs, multiplied by the heads' weights and by the columns of the
  /// output projection, plus its bias.
  /// @param out_PTRE   the result of attend(); multiplied in place.
  /// @param weight_BH  0 for query heads that are not kept.
  torch::Tensor join(torch::Tensor out_PTRE, const torch::Tensor& weight_BH, const Linear& out) const;

 private:
  int64_t batch_, groups_, queries_, width_;
  std::vector<int64_t> sequence_, group_;  ///< of each row, ascending
  std::vector<int64_t> first_row_;         ///< of each sequence, and P at the end
  torch::Tensor sequence_P_, place_P_;     ///< int64; place: sequence * G + group
};

}  // namespace prism
