// The fewest entries of a distribution that hold a share of it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace prism {

/// Keeps probabilities, the largest first, while those before add up to less than `share`: so always one, and the one
/// that reaches the share; a share of 1 keeps all. Of equal ones the lower index comes first.
/// @param probabilities  that add up to 1; none is negative.
/// @param kept           set to 1 where an entry is kept; others are left as they are.
/// @param keys           memory that is used again from call to call.
void keep_top_p(std::span<const float> probabilities, double share, std::span<uint8_t> kept,
                std::vector<uint64_t>& keys);

}  // namespace prism
