// Seeded initial weights. They depend only on a weight's name and shape, not on the order of construction.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "prism/layers/weight_list.h"

namespace prism {

/// Fills `values` with N(0, std^2) from a generator keyed by (seed, name). Two models that share a weight's name and
/// shape therefore start from the same values, which makes runs comparable.
void initialise_normal(torch::Tensor values, double std, uint64_t seed, std::string_view name);
/// The same with a uniform distribution over [-bound, bound).
void initialise_uniform(torch::Tensor values, double bound, uint64_t seed, std::string_view name);

struct Initialisation {
  std::string scheme = "gpt2";
  double std = 0.02;  ///< standard deviation of gpt2's weights
  size_t layers = 1;  ///< number of layers that add to the residual stream
  int64_t d_model = 1;
};

/// Initialises all weights:
///
///   gpt2     tables and matrices N(0, std^2), projections into the residual stream divided by sqrt(2 layers), biases
///   0.
///            Source: Radford et al. 2019, section 2.3
///   ladder   tables N(0, 1); weights and biases of feed-forward parts uniform within 1 / sqrt(fan-in), as in
///   LibTorch's
///            Linear; other matrices N(0, 1 / min(fan-in, d_model)) with biases 0. Source: the code of "multi-head
///            attention"
///
/// Gains are 1.
void initialise(const std::vector<WeightEntry>& weights, const Initialisation& initialisation, uint64_t seed);

}  // namespace prism
