// Seeded initial weights that depend on a weight's name and shape alone, not on the order of construction.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "prism/layers/weight_list.h"

namespace prism {

/// Fills `values` with N(0, std^2) from a generator keyed by (seed, name): two models that share a weight's name and
/// shape start from the same values, which pairs the runs of a comparison.
void initialise_normal(torch::Tensor values, double std, uint64_t seed, std::string_view name);
/// The same, uniform within [-bound, bound).
void initialise_uniform(torch::Tensor values, double bound, uint64_t seed, std::string_view name);

struct Initialisation {
  std::string scheme = "gpt2";
  double std = 0.02;  ///< of gpt2's weights
  size_t layers = 1;  ///< that add to the residual stream
  int64_t d_model = 1;
};

/// Draws all weights:
///
///   gpt2     tables and matrices N(0, std^2), those into the residual stream divided by sqrt(2 layers), biases 0;
///            Radford et al. 2019, section 2.3
///   ladder   tables N(0, 1); weights and biases of feed-forward parts uniform within 1 / sqrt(fan-in), as LibTorch's
///            Linear begins; other matrices N(0, 1 / min(fan-in, d_model)), their biases 0; the code of "multi-head
///            attention"
///
/// Gains are 1.
void initialise(const std::vector<WeightEntry>& weights, const Initialisation& initialisation, uint64_t seed);

}  // namespace prism
