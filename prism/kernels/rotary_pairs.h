// A model's rotary encoding as selectors see it: which two features of a head form a pair, and how fast it turns.
//
//   const RotaryPairs pairs = half_split_pairs(128, rotary_angles);         // Llama's order
//   const double kept = pooling_gain(pairs.angles[40], 128);                // of pair 40 in the mean of 128 tokens
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace prism {

/// Pair j turns by angles[j] radians per token. Features outside all pairs do not turn (partial rotary encodings).
struct RotaryPairs {
  int64_t head_dim = 0;
  std::vector<std::pair<int64_t, int64_t>> features;  ///< of each pair
  std::vector<double> angles;                         ///< of each pair, after any scaling of positions (YaRN)

  int64_t size() const { return static_cast<int64_t>(features.size()); }
  /// The features that do not turn, ascending.
  std::vector<int64_t> unturned() const;
  /// All pairs, the fastest first.
  std::vector<int64_t> by_speed() const;
};

/// Features j and j + R/2 form pair j, R = 2 angles.size() (GPT-NeoX, Llama, Qwen). Features from R on do not turn.
/// @throws InputError if R is more than head_dim.
RotaryPairs half_split_pairs(int64_t head_dim, std::span<const double> angles);
/// Features 2 j and 2 j + 1 form pair j (GPT-J).
RotaryPairs interleaved_pairs(int64_t head_dim, std::span<const double> angles);

/// Assigns pairs to the axes of multi-dimensional positions, e.g. in images (M-RoPE).
struct AxisSections {
  std::vector<int64_t> pairs;  ///< of each axis; their sum is the number of pairs
  /// true (Qwen3-VL): pair j turns with axis j mod 3 while that axis has pairs left, then with axis 0.
  /// false (Qwen2-VL): the first pairs turn with axis 0, the next with axis 1, ...
  bool interleaved = false;
};

/// Angle per token of each pair if positions advance by steps[i] along axis i from one token to the next. Text advances
/// by 1 along all axes, so its angles are the given ones; within a row of an image only the width axis advances.
/// @throws InputError if the sections do not add up to the number of pairs, or there is not one step for each axis.
/// Source: arXiv 2409.12191, section 2.1; interleaved arXiv 2511.21631.
std::vector<double> multi_axis_angles(std::span<const double> angles, const AxisSections& sections,
                                      std::span<const double> steps);

/// Length of the mean over `block` tokens of a unit vector that turns by `angle` radians per token:
///
///   lambda = |sin(B t / 2) / (B sin(t / 2))|
///
/// 1 at angle 0. Source: arXiv 2602.08426, section 3.
double pooling_gain(double angle, int64_t block);

}  // namespace prism
