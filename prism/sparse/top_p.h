// Top-p: the fewest entries of a distribution that hold a given share of it.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <span>
#include <vector>

namespace prism {

/// Keeps the largest entries until their sum reaches `share`, including the entry that reaches it, so at least one. A
/// share of 1 keeps all. Among equal entries the lower index comes first.
/// @param probabilities  non-negative, sum 1.
/// @param kept           set to 1 where an entry is kept, otherwise unchanged.
/// @param keys           scratch memory that is reused between calls.
void keep_top_p(std::span<const float> probabilities, double share, std::span<uint8_t> kept,
                std::vector<uint64_t>& keys);
/// The same for a tensor [N] of any floating-point type, where N is the size of `kept`.
void keep_top_p(const torch::Tensor& probabilities_N, double share, std::span<uint8_t> kept);

}  // namespace prism
