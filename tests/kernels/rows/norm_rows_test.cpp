// RMSNorm and LayerNorm, forward and backward, against their formulas in double precision.
#include <cmath>
#include <vector>

#include "tests/kernels/rows/row_kernels_fixture.h"

namespace prism {
namespace {

TEST_P(RowKernels, NormTheSumAndItsGradient) {
  sweep([&](const rows::Kernels& kernels, int64_t width, Random& random) {
    const auto count = static_cast<size_t>(kRows * width);
    const auto x = randoms(random, count), weight = randoms(random, static_cast<size_t>(width));
    const auto d_sum = randoms(random, count);
    Values branch(type(), randoms(random, count)), y(type(), kRows * width);
    Values d_y(type(), randoms(random, count)), d_branch(type(), kRows * width);
    std::vector<float> sum(count), inverse(kRows), d_x(count), d_weight(static_cast<size_t>(width), 0.5f);
    rows::Norm norm;
    norm.type = type();
    norm.width = width;
    norm.eps = 1e-5f;
    norm.x = x.data();
    norm.weight = weight.data();
    norm.branch = branch.data();
    norm.sum = sum.data();
    norm.inverse = inverse.data();
    norm.y = y.data();
    kernels.norm(norm, 0, 1);
    kernels.norm(norm, 1, kRows);
    rows::NormGradient gradient;
    gradient.type = type();
    gradient.width = width;
    gradient.sum = sum.data();
    gradient.weight = weight.data();
    gradient.inverse = inverse.data();
    gradient.d_y = d_y.data();
    gradient.d_sum = d_sum.data();
    gradient.d_x = d_x.data();
    gradient.d_branch = d_branch.data();
    gradient.d_weight = d_weight.data();
    kernels.norm_gradient(gradient, 0, 2);
    kernels.norm_gradient(gradient, 2, kRows);

    // Sums of `width` products and a few roundings after them, of values below 10.
    const double allowed = static_cast<double>(width + 8) * 0x1p-24 * 10;
    std::vector<double> d_weight_truth(static_cast<size_t>(width), 0.5);
    for (int64_t row = 0; row < kRows; ++row) {
      const auto at = [&](int64_t i) { return static_cast<size_t>(row * width + i); };
      double squares = 0, dots = 0;
      for (int64_t i = 0; i < width; ++i) {
        ASSERT_EQ(sum[at(i)], static_cast<float>(x[at(i)] + branch[at(i)]));
        squares += double{sum[at(i)]} * sum[at(i)];
        dots += d_y[at(i)] * weight[static_cast<size_t>(i)] * sum[at(i)];
      }
      const double r = 1 / std::sqrt(squares / static_cast<double>(width) + 1e-5);
      for (int64_t i = 0; i < width; ++i) {
        const double w = weight[static_cast<size_t>(i)], s = sum[at(i)];
        const double truth = s * r * w;
        EXPECT_NEAR(y[at(i)], truth, allowed + std::abs(truth) * 2 * rounding(type()));
        const double change = d_sum[at(i)] + r * (w * d_y[at(i)] - s * r * r * dots / static_cast<double>(width));
        // r is up to 1 / sqrt(eps) for short rows of small values; errors grow with it.
        EXPECT_NEAR(d_x[at(i)], change, allowed * (1 + r * r * r));
        EXPECT_NEAR(d_branch[at(i)], d_x[at(i)], std::abs(d_x[at(i)]) * 2 * rounding(type()));
        d_weight_truth[static_cast<size_t>(i)] += d_y[at(i)] * s * r;
      }
    }
    for (size_t i = 0; i < d_weight.size(); ++i) EXPECT_NEAR(d_weight[i], d_weight_truth[i], allowed);
  });
}

TEST_P(RowKernels, NormOfALayerInBothTypesAndItsGradient) {
  sweep([&](const rows::Kernels& kernels, int64_t width, Random& random) {
    const auto count = static_cast<size_t>(kRows * width), features = static_cast<size_t>(width);
    const auto x = randoms(random, count, 3), weight = randoms(random, features), bias = randoms(random, features);
    const auto d_unrounded = randoms(random, count);
    Values y(type(), kRows * width), d_y(type(), randoms(random, count));
    std::vector<float> unrounded(count), inverse(kRows), mean(kRows), d_x(count), d_weight(features), d_bias(features);
    rows::Norm norm;
    norm.type = type();
    norm.width = width;
    norm.eps = 1e-2f;
    norm.x = x.data();
    norm.weight = weight.data();
    norm.bias = bias.data();
    norm.inverse = inverse.data();
    norm.mean = mean.data();
    norm.y = y.data();
    norm.unrounded = unrounded.data();
    kernels.norm(norm, 0, kRows);
    rows::NormGradient gradient;
    gradient.type = type();
    gradient.width = width;
    gradient.sum = x.data();
    gradient.weight = weight.data();
    gradient.inverse = inverse.data();
    gradient.mean = mean.data();
    gradient.d_y = d_y.data();
    gradient.d_unrounded = d_unrounded.data();
    gradient.d_x = d_x.data();
    gradient.d_weight = d_weight.data();
    gradient.d_bias = d_bias.data();
    kernels.norm_gradient(gradient, 0, kRows);

    // Sums of `width` products and a few roundings after them, of values below 40: deviations are at least sqrt(eps).
    const double allowed = static_cast<double>(width + 8) * 0x1p-24 * 40, n = static_cast<double>(width);
    std::vector<double> d_weight_truth(features), d_bias_truth(features);
    for (int64_t row = 0; row < kRows; ++row) {
      const auto at = [&](int64_t i) { return static_cast<size_t>(row * width + i); };
      double m = 0, squares = 0, dots = 0, total = 0;
      for (int64_t i = 0; i < width; ++i) m += x[at(i)] / n;
      for (int64_t i = 0; i < width; ++i) squares += (x[at(i)] - m) * (x[at(i)] - m);
      const double r = 1 / std::sqrt(squares / n + 1e-2);
      const auto e = [&](int64_t i) { return (x[at(i)] - m) * r; };
      const auto g = [&](int64_t i) { return (d_y[at(i)] + d_unrounded[at(i)]) * weight[static_cast<size_t>(i)]; };
      for (int64_t i = 0; i < width; ++i) dots += g(i) * e(i), total += g(i);
      for (int64_t i = 0; i < width; ++i) {
        const auto feature = static_cast<size_t>(i);
        const double truth = e(i) * weight[feature] + bias[feature];
        EXPECT_NEAR(unrounded[at(i)], truth, allowed);
        EXPECT_NEAR(y[at(i)], unrounded[at(i)], std::abs(truth) * 2 * rounding(type()) + 1e-30);
        EXPECT_NEAR(d_x[at(i)], r * (g(i) - total / n - e(i) * dots / n), allowed * (1 + r * r));
        d_weight_truth[feature] += (d_y[at(i)] + d_unrounded[at(i)]) * e(i);
        d_bias_truth[feature] += d_y[at(i)] + d_unrounded[at(i)];
      }
    }
    for (size_t i = 0; i < features; ++i) {
      EXPECT_NEAR(d_weight[i], d_weight_truth[i], allowed);
      EXPECT_NEAR(d_bias[i], d_bias_truth[i], allowed);
    }
  });
}

}  // namespace
}  // namespace prism
