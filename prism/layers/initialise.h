// Seeded initial weights that depend on a parameter's name and shape alone, not on the order of construction.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string_view>

namespace prism {

/// Fills `weight` with N(0, std^2) from a generator keyed by (seed, name): two models that share a parameter's name and
/// shape start from the same values, which pairs the runs of a comparison.
void initialise_normal(torch::Tensor weight, double std, uint64_t seed, std::string_view name);
/// The same, uniform within [-bound, bound).
void initialise_uniform(torch::Tensor weight, double bound, uint64_t seed, std::string_view name);

}  // namespace prism
