// Weights in tests: found by name, converted to float64 for gradients by finite differences.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "prism/layers/weight_list.h"

namespace prism {

inline const Weight& find_weight(const std::vector<WeightEntry>& weights, const std::string& name) {
  for (const auto& entry : weights)
    if (entry.name == name) return entry.weight;
  throw std::runtime_error("no weight is named " + name);
}

inline void convert_weights(const std::vector<WeightEntry>& weights, torch::ScalarType type) {
  for (const auto& entry : weights) entry.weight.to(type);
}

}  // namespace prism
