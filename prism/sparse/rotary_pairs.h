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
  /// All pairs, the fastest first.
  std::vector<int64_t> by_speed() const;
};

/// Features j and j + R/2 are pair j, R = 2 angles.size() (GPT-NeoX, Llama, Qwen); features from R on do not turn.
/// @throws InputError where R is more than head_dim.
RotaryPairs half_split_pairs(int64_t head_dim, std::span<const double> angles);
/// Features 2 j and 2 j + 1 are pair j (GPT-J).
RotaryPairs interleaved_pairs(int64_t head_dim, std::span<const double> angles);

/// How pairs are shared out between the axes of positions that have several, of an image for instance (M-RoPE).
struct AxisSections {
  std::vector<int64_t> pairs;  ///< of each axis; their sum is the number of pairs
  bool interleaved = false;  ///< Qwen3-VL: j turns with axis j mod 3 as long as that has pairs left, then with axis 0;
                             ///< else Qwen2-VL: the first pairs turn with axis 0, those behind them with axis 1, ...
};

/// Angles per token of each pair where positions advance by `steps` along each axis from one token to the next. Text
/// advances by 1 along all, so that its angles are those given; within a row of an image the width's axis alone does.
/// @throws InputError where sections do not add up to the pairs, or steps are not one for each axis.
/// Source: arXiv 2409.12191, section 2.1; interleaved arXiv 2511.21631.
std::vector<double> multi_axis_angles(std::span<const double> angles, const AxisSections& sections,
                                      std::span<const double> steps);

/// How much of a vector that turns by `angle` radians a token is left in the mean over `block` tokens:
///
///   lambda = |sin(B t / 2) / (B sin(t / 2))|
///
/// 1 at angle 0. Source: arXiv 2602.08426, section 3.
double pooling_gain(double angle, int64_t block);

}  // namespace prism
