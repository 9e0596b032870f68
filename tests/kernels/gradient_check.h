// Gradients by central differences in float64.
#pragma once

#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <functional>

namespace prism {

/// Expects d f / d x, for a scalar f, to agree with (f(x + h) - f(x - h)) / 2h in every element of a float64 leaf.
/// Truncation is O(h^2) and cancellation O(eps / h): h = 1e-5 leaves about 1e-9 for values near 1.
inline void expect_gradient(const std::function<torch::Tensor(const torch::Tensor&)>& f, const torch::Tensor& x_given) {
  constexpr double kStep = 1e-5, kTolerance = 1e-6;
  auto x = x_given.detach().to(torch::kDouble).clone(at::MemoryFormat::Contiguous).requires_grad_(true);
  f(x).backward();
  const auto gradient = x.grad().contiguous();
  torch::NoGradGuard no_gradients;
  auto moved = x.detach().clone();
  auto values = moved.view({-1});
  for (int64_t i = 0; i < values.numel(); ++i) {
    const double value = values[i].item<double>();
    const auto at = [&](double v) {
      values[i] = v;
      // A copy: functions may write into their argument.
      return f(moved.clone()).item<double>();
    };
    const double difference = (at(value + kStep) - at(value - kStep)) / (2 * kStep);
    values[i] = value;
    const double found = gradient.view({-1})[i].item<double>();
    ASSERT_NEAR(found, difference, kTolerance * std::max(1.0, std::abs(difference))) << "element " << i;
  }
}

}  // namespace prism
