// The row kernels of every instruction set against their formulas in double precision, on raw memory.
#include "prism/kernels/rows/rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "prism/core/random.h"
#include "tests/kernels/bfloat16.h"
#include "tests/kernels/rows/row_kernels_fixture.h"

namespace prism {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();

INSTANTIATE_TEST_SUITE_P(, RowKernels,
                         testing::Combine(testing::Values(Isa::avx2, Isa::avx512),
                                          testing::Values(rows::Type::bfloat16, rows::Type::float32)),
                         [](const auto& tested) {
                           return std::string(std::get<0>(tested.param) == Isa::avx2 ? "Avx2" : "Avx512") +
                                  (std::get<1>(tested.param) == rows::Type::bfloat16 ? "Bfloat16" : "Float32");
                         });

TEST_P(RowKernels, SwigluAndItsGradient) {
  sweep([&](const rows::Kernels& kernels, int64_t width, Random& random) {
    const auto count = static_cast<size_t>(kRows * width);
    Values x(type(), randoms(random, 2 * count, 30)), y(type(), kRows * width);
    Values d_y(type(), randoms(random, count)), d_x(type(), 2 * kRows * width);
    rows::Swiglu work;
    work.type = type();
    work.width = width;
    work.x = x.data();
    work.y = y.data();
    kernels.swiglu(work, 0, 1);
    kernels.swiglu(work, 1, kRows);
    rows::SwigluGradient gradient;
    gradient.type = type();
    gradient.width = width;
    gradient.x = x.data();
    gradient.d_y = d_y.data();
    gradient.d_x = d_x.data();
    kernels.swiglu_gradient(gradient, 0, 2);
    kernels.swiglu_gradient(gradient, 2, kRows);
    for (int64_t row = 0; row < kRows; ++row)
      for (int64_t i = 0; i < width; ++i) {
        const auto at = static_cast<size_t>(row * width + i), to = static_cast<size_t>(row * 2 * width + i);
        const double gate = x[to], up = x[to + static_cast<size_t>(width)], s = 1 / (1 + std::exp(-gate));
        // A dozen float32 roundings, including the exponent's argument (30 times 2^-24), then one to the type.
        const auto near = [&](double found, double truth, double size) {
          EXPECT_NEAR(found, truth, size * 48 * 0x1p-24 + std::abs(truth) * 2 * rounding(type()));
        };
        near(y[at], gate * s * up, std::abs(gate * s * up));
        near(d_x[to], d_y[at] * up * s * (1 + gate * (1 - s)), std::abs(d_y[at] * up) * s * (1 + std::abs(gate)));
        near(d_x[to + static_cast<size_t>(width)], d_y[at] * gate * s, std::abs(d_y[at] * gate * s));
      }
  });
}

TEST_P(RowKernels, GoBackThroughRelu) {
  const auto* kernels = this->kernels();
  for (const int64_t width : {1, 7, 16, 37}) {
    Random random(static_cast<uint64_t>(width));
    const auto count = static_cast<size_t>(kRows * width);
    auto values = randoms(random, count);
    for (size_t i = 0; i < count; i += 3) values[i] = 0;
    values[count - 1] = kNan;
    Values y(type(), values), d_y(type(), randoms(random, count)), d_x(type(), static_cast<int64_t>(count));
    rows::ReluGradient work;
    work.type = type();
    work.width = width;
    work.y = y.data();
    work.d_y = d_y.data();
    work.d_x = d_x.data();
    kernels->relu_gradient(work, 0, 1);
    kernels->relu_gradient(work, 1, kRows);
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(d_x[i], y[i] <= 0 ? 0 : d_y[i]) << kernels->name << " " << i;
  }
}

TEST_P(RowKernels, SwigluOfExtremes) {
  const auto* kernels = this->kernels();
  Values x(type(), {-1e30f, -kInfinity, 1e30f, kInfinity, kNan, 1, 1, 1, 1, 1}), y(type(), 5);
  rows::Swiglu work;
  work.type = type();
  work.width = 5;
  work.x = x.data();
  work.y = y.data();
  kernels->swiglu(work, 0, 1);
  EXPECT_NEAR(y[0], 0, 1e-7) << "1e30 * 2^-126";
  EXPECT_EQ(y[1], -kInfinity) << "-inf * 2^-126";
  EXPECT_NEAR(y[2] / 1e30, 1, 0.01);
  EXPECT_TRUE(std::isinf(y[3]));
  EXPECT_TRUE(std::isnan(y[4]));
}

TEST_P(RowKernels, RotateThereAndBack) {
  sweep([&](const rows::Kernels& kernels, int64_t width, Random& random) {
    constexpr int64_t kHeads = 3, kRotated = 2, kPositions = 2;
    const auto count = static_cast<size_t>(kRows * kHeads * width);
    const auto angles = randoms(random, static_cast<size_t>(kPositions * width / 2), 3);
    std::vector<float> cos, sin;
    for (const float angle : angles) {
      cos.push_back(std::cos(angle));
      sin.push_back(std::sin(angle));
    }
    Values x(type(), randoms(random, count)), y(type(), kRows * kHeads * width);
    rows::Rotation work;
    work.type = type();
    work.heads = kHeads;
    work.rotated = kRotated;
    work.head_dim = width;
    work.positions = kPositions;
    work.cos = cos.data();
    work.sin = sin.data();
    work.in = x.data();
    work.out = y.data();
    kernels.rotate(work, 0, 1);
    kernels.rotate(work, 1, kRows);
    for (int64_t row = 0; row < kRows; ++row)
      for (int64_t head = 0; head < kHeads; ++head)
        for (int64_t j = 0; j < width / 2; ++j) {
          const auto a = static_cast<size_t>((row * kHeads + head) * width + j), b = a + static_cast<size_t>(width / 2);
          const auto angle = static_cast<size_t>(row % kPositions * (width / 2) + j);
          const double c = head < kRotated ? cos[angle] : 1, s = head < kRotated ? sin[angle] : 0;
          EXPECT_NEAR(y[a], x[a] * c - x[b] * s, 2 * rounding(type()) * 2);
          EXPECT_NEAR(y[b], x[b] * c + x[a] * s, 2 * rounding(type()) * 2);
        }
    work.in = y.data();
    work.direction = -1;
    kernels.rotate(work, 0, kRows);
    for (size_t i = 0; i < count; ++i) EXPECT_NEAR(y[i], x[i], 4 * rounding(type()) * 2);
  });
}

TEST_P(RowKernels, CrossEntropyAndItsGradient) {
  sweep([&](const rows::Kernels& kernels, int64_t width, Random& random) {
    for (const auto& [magnitude, weight] : {std::pair{1.0, 0.0}, {80.0, 0.0}, {1.0, 0.01}}) {
      // All logits are below zero, so that padding after the last one would show.
      auto values = randoms(random, static_cast<size_t>(kRows * width), magnitude);
      for (auto& value : values) value -= 100;
      const Values given(type(), values);
      Values logits(type(), values);
      const std::vector<int64_t> labels = {width - 1, -1, static_cast<int64_t>(random.below(width))};
      std::vector<float> losses(kRows, 99);
      rows::CrossEntropy work;
      work.type = type();
      work.classes = width;
      work.logits = logits.data();
      work.labels = labels.data();
      work.losses = losses.data();
      work.lse_weight = static_cast<float>(weight);
      kernels.cross_entropy(work, 0, kRows);
      for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(logits[i], given[i]) << "written without gradient";
      const auto without = losses;
      work.gradient = true;
      work.share = 0.25f;
      kernels.cross_entropy(work, 0, kRows);
      EXPECT_EQ(without, losses);
      for (int64_t row = 0; row < kRows; ++row) {
        const auto at = [&](int64_t i) { return static_cast<size_t>(row * width + i); };
        const int64_t label = labels[static_cast<size_t>(row)];
        double sum = 0, largest = -1e300;
        for (int64_t i = 0; i < width; ++i) largest = std::max(largest, given[at(i)]);
        for (int64_t i = 0; i < width; ++i) sum += std::exp(given[at(i)] - largest);
        const double lse = largest + std::log(sum), pull = 1 + 2 * weight * lse;
        const double loss = label < 0 ? 0 : lse - given[at(label)] + weight * lse * lse;
        // The largest term has exponent 0; the rounded arguments of the others are up to 180.
        const double relative = (180 + static_cast<double>(width)) * 0x1p-24;
        EXPECT_NEAR(losses[static_cast<size_t>(row)], loss, 2 * relative * (1 + loss));
        for (int64_t i = 0; i < width; ++i) {
          const double p = std::exp(given[at(i)] - largest) / sum;
          const double truth = label < 0 ? 0 : 0.25 * (pull * p - (i == label ? 1 : 0));
          EXPECT_NEAR(logits[at(i)], truth, (1 + std::abs(pull)) * relative + std::abs(truth) * 2 * rounding(type()));
        }
      }
    }
  });
}

TEST_P(RowKernels, CrossEntropySumsManyClasses) {
  const auto* kernels = this->kernels();
  constexpr int64_t kClasses = 70001;
  Values logits(type(), std::vector<float>(kClasses, 1.0f));
  const int64_t label = 7;
  float loss = 0;
  rows::CrossEntropy work;
  work.type = type();
  work.classes = kClasses;
  work.logits = logits.data();
  work.labels = &label;
  work.losses = &loss;
  kernels->cross_entropy(work, 0, 1);
  EXPECT_NEAR(loss, std::log(static_cast<double>(kClasses)), 2e-6) << kernels->name;
}

TEST_P(RowKernels, AddRowsInTheirOrder) {
  sweep([&](const rows::Kernels& kernels, int64_t width, Random& random) {
    constexpr int64_t kCount = 9;
    const int64_t stride = width + 3;
    const Values x(type(), randoms(random, static_cast<size_t>(kCount * stride - 3)));
    const auto before = randoms(random, static_cast<size_t>(width));
    auto sums = guarded(before);
    Values copy = x;
    kernels.add({type(), width, stride, copy.data(), sums.data()}, 1, 4);
    kernels.add({type(), width, stride, copy.data(), sums.data()}, 4, kCount);
    for (int64_t i = 0; i < width; ++i) {
      float expected = before[static_cast<size_t>(i)];
      for (int64_t row = 1; row < kCount; ++row)
        expected += static_cast<float>(x[static_cast<size_t>(row * stride + i)]);
      EXPECT_EQ(sums[static_cast<size_t>(i)], expected) << i;
    }
  });
}

TEST_P(RowKernels, DotsAreTheSameWhateverTheNumberOfRows) {
  Random random(2);
  const auto* kernels = this->kernels();
  for (const int64_t width : {2, 8, 16, 24, 48, 64, 96, 100})
    for (const int64_t count : {1, 7, 16, 17, 40}) {
      SCOPED_TRACE(testing::Message() << kernels->name << ", " << count << " rows of " << width);
      const auto x = guarded(randoms(random, static_cast<size_t>(width)));
      const auto y = guarded(randoms(random, static_cast<size_t>(count * width)));
      Guarded<float> out(static_cast<size_t>(count)), alone(1);
      kernels->dots({width, 0.5f, x.data(), y.data(), out.data()}, 0, count);
      for (int64_t n = 0; n < count; ++n) {
        double expected = 0, size = 0;
        for (int64_t i = 0; i < width; ++i) {
          const double product = double{x[static_cast<size_t>(i)]} * y[static_cast<size_t>(n * width + i)];
          expected += 0.5 * product;
          size += std::abs(product);
        }
        EXPECT_NEAR(out[static_cast<size_t>(n)], expected, static_cast<double>(width) * 0x1p-24 * size);
        kernels->dots({width, 0.5f, x.data(), y.data() + n * width, alone.data()}, 0, 1);
        EXPECT_EQ(alone[0], out[static_cast<size_t>(n)]);
      }
    }
}

TEST_P(RowKernels, SoftmaxAddsUpToOne) {
  Random random(3);
  const auto* kernels = this->kernels();
  for (const int64_t width : {1, 2, 15, 16, 17, 33, 1000}) {
    SCOPED_TRACE(testing::Message() << kernels->name << ", width " << width);
    const auto given = randoms(random, static_cast<size_t>(2 * width), 100);
    auto x = guarded(given);
    kernels->softmax({width, x.data()}, 0, 2);
    for (int64_t row = 0; row < 2; ++row) {
      const float* values = given.data() + row * width;
      const double largest = *std::max_element(values, values + width);
      double sum = 0;
      for (int64_t i = 0; i < width; ++i) sum += std::exp(values[i] - largest);
      for (int64_t i = 0; i < width; ++i) {
        const double expected = std::exp(values[i] - largest) / sum;
        // Exponents of up to 200 are rounded before exponentiation.
        EXPECT_NEAR(x[static_cast<size_t>(row * width + i)], expected, 200 * 0x1p-23 * expected + 1e-37) << i;
      }
    }
  }
}

TEST_P(RowKernels, KeepANanInItsRow) {
  const auto* kernels = this->kernels();
  constexpr int64_t kWidth = 40;
  for (const size_t bad : {size_t{3}, size_t{39}}) {
    std::vector<float> values(2 * kWidth, 1.0f);
    values[bad] = kNan;
    Values logits(type(), values);
    const std::vector<int64_t> labels = {0, 0};
    std::vector<float> losses(2);
    rows::CrossEntropy work;
    work.type = type();
    work.classes = kWidth;
    work.logits = logits.data();
    work.labels = labels.data();
    work.losses = losses.data();
    kernels->cross_entropy(work, 0, 2);
    EXPECT_TRUE(std::isnan(losses[0])) << kernels->name << " at " << bad;
    EXPECT_NEAR(losses[1], std::log(40.0), 1e-5);
  }
}

}  // namespace
}  // namespace prism
