// Rotary position tables, shared by all layers with the same head width and rotary configuration.
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
/// where l = floor(c(beta_fast)) and h = ceil(c(beta_slow)). c(n) = D ln(C / (2 pi n)) / (2 ln base) is the pair that
/// turns n times in the original context C.
///
/// @param config  of kind rope.
/// @throws InputError for an odd width, an unknown scaling, or numbers out of range.
/// Source: arXiv 2104.09864; linear scaling arXiv 2306.15595; YaRN arXiv 2309.00071, section 3.2, as in its authors'
/// code: the ramp is linear in the pair index between the rounded l and h; in the text it is linear in the number of
/// turns.
torch::Tensor rotary_angles(const RotaryConfig& config, int64_t head_dim);

/// The factor that scales cosines and sines; 1 without YaRN. Source: arXiv 2309.00071, section 3.4.
double rotary_attention_factor(const RotaryConfig& config);

/// The rotary pairs of prism's heads: features j and j + D/2. Empty if the config does not turn features.
RotaryPairs rotary_pairs(const RotaryConfig& config, int64_t head_dim);

struct RotaryTable {
  torch::Tensor cos, sin;  ///< [positions, D/2] float32
};

/// Keeps one table for each head width and configuration. A table grows to the longest position requested and lives on
/// the device requested last.
class RotaryCache {
 public:
  /// Rows [first, first + count) of the table.
  RotaryTable rows(const RotaryConfig& config, int64_t head_dim, int64_t first, int64_t count,
                   const torch::Device& device = torch::kCPU);
  /// One row for each entry of positions_BT (int64): [B, T, D/2], on the device of the positions.
  RotaryTable rows(const RotaryConfig& config, int64_t head_dim, const torch::Tensor& positions_BT);
  size_t tables() const { return tables_.size(); }

 private:
  const RotaryTable& table(const RotaryConfig& config, int64_t head_dim, int64_t positions,
                           const torch::Device& device);

  std::map<std::pair<int64_t, RotaryConfig>, RotaryTable> tables_;
};

}  // namespace prism
