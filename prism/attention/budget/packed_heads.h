// Attention over the kept heads alone: each kept head of each sequence becomes one row of a batch.
//
//   const PackedHeads packed(kept_BH, layer);                      // which rows there are
//   const auto& panels = head_panels.of(qkv, out, layer, x_BTD.scalar_type());
//   auto fused_PTF = packed.project(x_BTD, panels);
//   ...                                                            // attend() over P rows of one head
//   auto out_BTD = packed.join(out_PTRE, panels);
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "prism/attention/layer_config.h"
#include "prism/layers/linear.h"
#include "prism/layers/packed_weight.h"

namespace prism {

// B batch, T positions, D d_model, H heads, G key/value heads, R = H / G query heads of each, E head width,
// P rows: kept pairs of a sequence and a key/value head, F = (R + 2) E, I = R E

/// The weights of an attention part, head by head, so that products with some heads read theirs alone. They are packed
/// where prism multiplies in bfloat16, so that no call packs them.
class HeadPanels {
 public:
  class Panels {
   public:
    Panels() = default;
    Panels(const Linear& qkv, const Linear& out, const LayerConfig& layer, torch::ScalarType type);
    /// The queries of a group, then its keys and values: x [T, D] -> out [T, F].
    void project(const torch::Tensor& out_TF, const torch::Tensor& x_TD, int64_t group) const;
    /// The output projection of some groups, side by side in x [T, groups I] -> out [T, D].
    void join(const torch::Tensor& out_TD, const torch::Tensor& x_TI, std::span<const int64_t> groups) const;
    int64_t features() const { return features_; }
    int64_t d_model() const { return d_model_; }

   private:
    int64_t features_ = 0, inner_ = 0, d_model_ = 0;  ///< F, I, D
    torch::Tensor bias_GF_, bias_D_;                  ///< in the weights' dtype; undefined without a bias
    std::vector<PackedWeight> packed_projections_;
    std::optional<PackedWeight> packed_output_;
    torch::Tensor weight_GFD_, output_GID_;  ///< unless packed, in the dtype of products
  };
  /// Makes the panels when they are first needed in this dtype, and again when the weights' values have changed. Not
  /// for calls from several threads at once.
  const Panels& of(const Linear& qkv, const Linear& out, const LayerConfig& layer, torch::ScalarType type);

 private:
  /// Identifies the values that the panels were made from.
  struct Key {
    torch::ScalarType type = torch::kFloat;
    std::optional<torch::ScalarType> packed_type;         ///< of prompts, on this processor
    std::vector<std::pair<const void*, int64_t>> values;  ///< memory and version of each weight
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
  /// The values of each row's query heads, [P, R].
  torch::Tensor of_heads(const torch::Tensor& values_BH) const;
  /// The output projection of each sequence's heads, plus its bias: [B, T, D].
  /// @param out_PTRE  the result of attend().
  torch::Tensor join(const torch::Tensor& out_PTRE, const HeadPanels::Panels& panels) const;

 private:
  int64_t batch_, groups_, queries_, width_;
  std::vector<int64_t> sequence_, group_;  ///< of each row, ascending
  std::vector<int64_t> first_row_;         ///< of each sequence, and P at the end
  torch::Tensor sequence_P_, place_P_;     ///< int64; place: sequence * G + group
};

}  // namespace prism
