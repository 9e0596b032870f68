// Which two features of a head turn together, and how fast: what selectors know of a model's position encoding.
//
//   const RotaryPairs pairs = half_split_pairs(128, rotary_angles);         // Llama's order
//   const double kept = pooling_gain(pairs.angles[40], 128);                // of pair 40 in the mean of 128 tokens
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace prism {

/// Pair j turns by angles[j] radians a token. Features in no pair do not turn (partial rotary encodings).
struct RotaryPairs {
  int64_t head_dim = 0;
  std::vector<std::pair<int64_t, int64_t>> features;  ///< of each pair
  std::vector<double> angles;                         ///< of each pair; scaled ones where positions are scaled (YaRN)

  int64_t size() const { return static_cast<int64_t>(features.size()); }
  /// The features that do not turn, ascending.
  std::vector<int64_t> unturned() const;
};

/// Features j and j + R/2 are pair j, R = 2 angles.size() (GPT-NeoX, Llama, Qwen); features from R on do not turn.
/// @throws InputError where R is more than head_dim.
RotaryPairs half_split_pairs(int64_t head_dim, std::span<const double> angles);
/// Features 2 j and 2 j + 1 are pair j (GPT-J).
RotaryPairs interleaved_pairs(int64_t head_dim, std::span<const double> angles);

/// How much of a vector that turns by `angle` radians a token is left in the mean over `block` tokens:
///
///   lambda = |sin(B t / 2) / (B sin(t / 2))|
///
/// 1 at angle 0. Source: arXiv 2602.08426, section 3.
double pooling_gain(double angle, int64_t block);

}  // namespace prism
