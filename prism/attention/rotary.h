// Rotary position tables, shared by all layers with the same head width and rotary configuration.
#pragma once

#include <torch/types.h>

#include <compare>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace prism {

struct RotaryPairs;

struct RotaryConfig {
  std::string kind = "rope";
  double base = 10000;
  std::string scaling = "none";
  double factor = 1;
  int64_t original_context = 0;
  double beta_fast = 32, beta_slow = 1, attention_factor = 0;
  double low_freq_factor = 1, high_freq_factor = 4;
  std::vector<double> factors = {};
  int64_t word_dims = 0;
  double word_base = 10;
  template <class Visitor>
  void visit(Visitor& v) {
    v("kind", kind, "rope: rotary encoding of queries and keys; none: no encoding, the other fields are ignored");
    v("base", base, "b in theta_j = b^(-2j / D); a larger base turns pairs more slowly");
    v("scaling", scaling,
      "none; linear: divides positions by factor; yarn: divides them for slow pairs only and sharpens attention; "
      "llama3: "
      "divides them for slow pairs only, as Llama 3.1 does");
    v("factor", factor, "factor of the scaling; 1 leaves positions unchanged");
    v("original_context", original_context, "yarn, llama3: context that the model was trained with before scaling");
    v("beta_fast", beta_fast, "yarn: pairs that turn more often than this within original_context are unchanged");
    v("beta_slow", beta_slow, "yarn: positions of pairs that turn less often than this are divided by factor");
    v("attention_factor", attention_factor, "yarn: factor of cosines and sines; 0: 0.1 ln(factor) + 1");
    v("low_freq_factor", low_freq_factor,
      "llama3: positions of pairs that turn less often than this within original_context are divided by factor");
    v("high_freq_factor", high_freq_factor, "llama3: pairs that turn more often than this are unchanged");
    v("factors", factors,
      "divisors of the angles, applied besides the scaling: one for each rotary pair, except the pairs of word_dims; "
      "as "
      "in GGUF's rope_freqs; empty: none");
    v("word_dims", word_dims,
      "number of features of each head that are rotated by the token's position in its word; the others are rotated by "
      "its position in the text, with the angles of a head of width head_dim - word_dims; even; 0: none");
    v("word_base", word_base, "b in theta_j = b^(-2j / word_dims) of the features that turn with positions in words");
  }
  bool turns() const { return kind != "none"; }
  // NOLINTNEXTLINE(modernize-use-nullptr): there is no pointer
  friend auto operator<=>(const RotaryConfig&, const RotaryConfig&) = default;
};

/// Angle per token of each pair, [head_dim / 2] float64, radians. With D = head_dim - word_dims and
/// t_j = base^(-2j / D), j < D/2:
///
///   none t_j;  linear t_j / factor;  yarn (1 - r_j) t_j + r_j t_j / factor,  r_j = clamp((j - l) / (h - l), 0, 1);
///   llama3 s_j t_j + (1 - s_j) t_j / factor,  s_j = clamp((n_j - low) / (high - low), 0, 1),  n_j = C t_j / (2 pi)
///
/// where l = floor(c(beta_fast)) and h = ceil(c(beta_slow)). c(n) = D ln(C / (2 pi n)) / (2 ln base) is the pair that
/// turns n times in the original context C; low and high are low_freq_factor and high_freq_factor. All are then divided
/// by the factors, if there are any. The last word_dims / 2 pairs do not turn with the position: 0.
///
/// @param config  of kind rope.
/// @throws InputError for an odd width, word_dims that are odd or not below the width, an unknown scaling, or numbers
///         out of range.
/// Source: arXiv 2104.09864; linear scaling arXiv 2306.15595; YaRN arXiv 2309.00071, section 3.2, as in its authors'
/// code: the ramp is linear in the pair index between the rounded l and h; in the text it is linear in the number of
/// turns. llama3: arXiv 2407.21783 and transformers' modeling_rope_utils.
torch::Tensor rotary_angles(const RotaryConfig& config, int64_t head_dim);

/// The factor that scales cosines and sines; 1 without YaRN. Source: arXiv 2309.00071, section 3.4.
double rotary_attention_factor(const RotaryConfig& config);

/// The rotary pairs of prism's heads: features j and j + D/2. Empty if the config does not turn features.
RotaryPairs rotary_pairs(const RotaryConfig& config, int64_t head_dim);

struct RotaryTable {
  torch::Tensor cos, sin;  ///< [positions, D/2] or [B, T, D/2] float32
};

/// The positions of a call's tokens.
struct TokenPositions {
  torch::Tensor positions_BT = {};       ///< int64; undefined: first, first + 1, ... in every row
  torch::Tensor word_positions_BT = {};  ///< int64, positions in words; may be undefined if word_dims is 0
  int64_t first = 0;
};

/// Keeps one table for each width and configuration. A table grows to the longest position requested and lives on the
/// device requested last. The rows picked last are kept too, because all layers of a call pick rows for the same
/// tensors of positions; those tensors must not be changed in place.
class RotaryCache {
 public:
  /// The rows of a call's T tokens: [T, D/2], or [B, T, D/2] if the rows of the batch differ. The angle of pair j is
  /// p theta_j: p is the position and theta_j the j-th of rotary_angles(); in the last w/2 = word_dims / 2 pairs p is
  /// the position in the word, and theta_j = word_base^(-2i / w), i = j - (D - w) / 2.
  RotaryTable rows(const RotaryConfig& config, int64_t head_dim, const TokenPositions& places, int64_t tokens,
                   const torch::Device& device = torch::kCPU);
  size_t tables() const { return tables_.size(); }

 private:
  /// The first rows of a table of `width` features without word positions.
  const RotaryTable& table(const RotaryConfig& config, int64_t width, int64_t positions, const torch::Device& device);
  /// One row for each entry of positions_BT.
  RotaryTable picked(const RotaryConfig& config, int64_t width, const torch::Tensor& positions_BT);

  struct LastRows {
    TokenPositions places;
    RotaryTable rows;
  };
  /// rows(), computed anew.
  RotaryTable find_rows(const RotaryConfig& config, int64_t head_dim, const TokenPositions& places, int64_t tokens,
                        const torch::Device& device);

  std::map<std::pair<int64_t, RotaryConfig>, RotaryTable> tables_;
  std::map<std::pair<int64_t, RotaryConfig>, LastRows> last_;
};

}  // namespace prism
