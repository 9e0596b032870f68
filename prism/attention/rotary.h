// Rotary position tables, shared between all layers whose heads turn alike.
#pragma once

#include <torch/types.h>

#include <compare>
#include <map>
#include <string>
#include <utility>

namespace prism {

struct RotaryPairs;

struct RotaryConfig {
  std::string kind = "rope";
  double base = 10000;
  std::string scaling = "none";
  double factor = 1;
  int64_t original_context = 0;
  double beta_fast = 32, beta_slow = 1, attention_factor = 0;
  template <class Visitor>
  void visit(Visitor& v) {
    v("kind", kind, "rope: rotary encoding of queries and keys; none: no encoding, the other fields are ignored");
    v("base", base, "b in theta_j = b^(-2j / D); a larger base turns pairs more slowly");
    v("scaling", scaling,
      "none; linear: divides positions by factor; yarn: divides them for slow pairs only and sharpens attention");
    v("factor", factor, "factor of the scaling; 1 leaves positions unchanged");
    v("original_context", original_context, "yarn: context that the model was trained with before scaling");
    v("beta_fast", beta_fast, "yarn: pairs that turn more often than this within original_context are unchanged");
    v("beta_slow", beta_slow, "yarn: positions of pairs that turn less often than this are divided by factor");
    v("attention_factor", attention_factor, "yarn: factor of cosines and sines; 0: 0.1 ln(factor) + 1");
  }
  bool turns() const { return kind != "none"; }
  // NOLINTNEXTLINE(modernize-use-nullptr): there is no pointer
  friend auto operator<=>(const RotaryConfig&, const RotaryConfig&) = default;
};

/// Angle per token of each pair, [D/2] float64, radians. With t_j = base^(-2j / D), j < D/2:
///
///   none t_j;  linear t_j / factor;  yarn (1 - r_j) t_j + r_j t_j / factor,  r_j = clamp((j - l) / (h - l), 0, 1)
///
/// where l = floor(c(beta_fast)) and h = ceil(c(beta_slow)) are the pairs that turn so often in the original context C:
/// c(n) = D ln(C / (2 pi n)) / (2 ln base).
///
/// @param config  of kind rope.
/// @throws InputError for an odd width, an unknown scaling, or numbers that make no sense.
/// Source: arXiv 2104.09864; linear scaling arXiv 2306.15595; YaRN arXiv 2309.00071, section 3.2, as in its authors'
/// code: the ramp is over pairs, between l and h rounded; the text's is over how often a pair turns.
torch::Tensor rotary_angles(const RotaryConfig& config, int64_t head_dim);

/// What cosines and sines are scaled by, 1 without YaRN. Source: arXiv 2309.00071, section 3.4.
double rotary_attention_factor(const RotaryConfig& config);

/// The same as pairs of features in the order of prism's heads: j and j + D/2; none where nothing turns.
RotaryPairs rotary_pairs(const RotaryConfig& config, int64_t head_dim);

struct RotaryTable {
  torch::Tensor cos, sin;  ///< [positions, D/2] float32
};

/// One table for each width and configuration, grown to the longest position asked for, on the device that was
/// asked for last.
class RotaryCache {
 public:
  /// Rows [first, first + count).
  RotaryTable rows(const RotaryConfig& config, int64_t head_dim, int64_t first, int64_t count,
                   const torch::Device& device = torch::kCPU);
  /// One row for each entry of positions_BT (int64): [B, T, D/2], where the positions are.
  RotaryTable rows(const RotaryConfig& config, int64_t head_dim, const torch::Tensor& positions_BT);
  size_t tables() const { return tables_.size(); }

 private:
  const RotaryTable& table(const RotaryConfig& config, int64_t head_dim, int64_t positions,
                           const torch::Device& device);

  std::map<std::pair<int64_t, RotaryConfig>, RotaryTable> tables_;
};

}  // namespace prism
