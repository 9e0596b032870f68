// Weights in tests: found by name, converted to float64 for gradients by finite differences.
#pragma once

#include <gtest/gtest.h>

#include <functional>
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

/// Expects the gradients of a loss in three elements of each named float64 weight to agree with central differences.
inline void expect_weight_gradients(const std::vector<WeightEntry>& weights, const std::vector<std::string>& names,
                                    const std::function<torch::Tensor()>& loss) {
  constexpr double kStep = 1e-5, kTolerance = 1e-7;
  loss().backward();
  for (const auto& name : names) {
    const auto& values = find_weight(weights, name).tensor();
    const auto gradient = values.grad();
    const torch::NoGradGuard no_gradients;
    for (const int64_t i : {int64_t{0}, values.numel() / 3, values.numel() - 1}) {
      auto value = values.view({-1})[i];
      const double before = value.item<double>();
      const auto at = [&](double moved) {
        value.fill_(moved);
        return loss().item<double>();
      };
      const double above = at(before + kStep), below = at(before - kStep);
      value.fill_(before);
      EXPECT_NEAR(gradient.view({-1})[i].item<double>(), (above - below) / (2 * kStep), kTolerance) << name << " " << i;
    }
  }
}

}  // namespace prism
