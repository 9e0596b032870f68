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

/// A gated linear unit and its gradients in float64.
struct PlainGlu {
  double y, d_gate, d_inner, d_up;
  double size;  ///< what the gradients' roundings are relative to
};

PlainGlu plain_glu(double gate, const double* inner, double up, double d_y) {
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  const auto slope = [&](double x) { return sigmoid(x) * (1 + x * (1 - sigmoid(x))); };
  const double within = inner == nullptr ? 1 : *inner * sigmoid(*inner), z = gate * within, g = z * sigmoid(z);
  const double d_z = d_y * up * slope(z);
  return {.y = g * up,
          .d_gate = d_z * within,
          .d_inner = inner == nullptr ? 0 : d_z * gate * slope(*inner),
          .d_up = d_y * g,
          .size = std::abs(d_y * up) * sigmoid(z) * (1 + std::abs(z))};
}

TEST_P(RowKernels, GluAndItsGradient) {
  for (const bool nested : {false, true})
    for (const bool beside : {false, true})  // up beside the gates, or rows of its own that are further apart
      sweep([&](const rows::Kernels& kernels, int64_t width, Random& random) {
        const int64_t parts = nested ? 2 : 1, gate_stride = (beside ? parts + 1 : parts) * width;
        const int64_t up_stride = beside ? gate_stride : width + 3, first_up = beside ? parts * width : 0;
        const double magnitude = nested ? 5 : 30;  // z is a product of two
        Values gates(type(), randoms(random, static_cast<size_t>(kRows * gate_stride), magnitude));
        Values ups(type(), randoms(random, static_cast<size_t>(kRows * up_stride), magnitude));
        Values d_gates(type(), kRows * gate_stride), d_ups(type(), kRows * up_stride);
        Values d_y(type(), randoms(random, static_cast<size_t>(kRows * width))), y(type(), kRows * width);
        Values &up = beside ? gates : ups, &d_up = beside ? d_gates : d_ups;
        const auto from = [&](Values& values, int64_t first) -> void* {
          return static_cast<char*>(values.data()) + first * (type() == rows::Type::bfloat16 ? 2 : 4);
        };
        rows::GluGradient work;
        work.type = type();
        work.width = width;
        work.gate_stride = gate_stride;
        work.up_stride = up_stride;
        work.gate = gates.data();
        work.inner = nested ? from(gates, width) : nullptr;
        work.up = from(up, first_up);
        work.y = y.data();
        work.d_y = d_y.data();
        work.d_gate = d_gates.data();
        work.d_inner = nested ? from(d_gates, width) : nullptr;
        work.d_up = from(d_up, first_up);
        kernels.glu(work, 0, 1);
        kernels.glu(work, 1, kRows);
        kernels.glu_gradient(work, 0, 2);
        kernels.glu_gradient(work, 2, kRows);
        for (int64_t row = 0; row < kRows; ++row)
          for (int64_t i = 0; i < width; ++i) {
            const auto at = static_cast<size_t>(row * width + i), at_gate = static_cast<size_t>(row * gate_stride + i);
            const auto at_inner = at_gate + static_cast<size_t>(width);
            const auto at_up = static_cast<size_t>(row * up_stride + first_up + i);
            const double inner = nested ? gates[at_inner] : 0, gate = gates[at_gate];
            const auto truth = plain_glu(gate, nested ? &inner : nullptr, up[at_up], d_y[at]);
            // Some two dozen float32 roundings, including those of the exponents' arguments (at most 30 times 2^-24),
            // then one to the type.
            const auto near = [&](double found, double expected, double size) {
              EXPECT_NEAR(found, expected,
                          std::max(std::abs(expected), size) * (nested ? 128 : 48) * 0x1p-24 +
                              std::abs(expected) * 2 * rounding(type()));
            };
            near(y[at], truth.y, 0);
            near(d_gates[at_gate], truth.d_gate, truth.size * (nested ? 1 + std::abs(inner) : 1));
            near(d_up[at_up], truth.d_up, 0);
            if (nested) near(d_gates[at_inner], truth.d_inner, truth.size * std::abs(gate) * (1 + std::abs(inner)));
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

TEST_P(RowKernels, GluOfExtremes) {
  const auto* kernels = this->kernels();
  Values x(type(), {-1e30f, -kInfinity, 1e30f, kInfinity, kNan}), y(type(), 5);
  Values ups(type(), {1, 1, 1, 1, 1});
  rows::Glu work;
  work.type = type();
  work.width = 5;
  work.gate = x.data();
  work.up = ups.data();
  work.y = y.data();
  kernels->glu(work, 0, 1);
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

TEST_P(RowKernels, ProjectionsAreTheSameWhateverTheNumberOfRows) {
  Random random(4);
  const auto* kernels = this->kernels();
  for (const int64_t inner : {1, 8, 40, 64, 100})
    for (const int64_t outputs : {1, 5, 16, 37})
      for (const int64_t count : {1, 2, 5, 9}) {
        SCOPED_TRACE(testing::Message() << kernels->name << ", " << count << " x " << inner << " x " << outputs);
        const int64_t x_stride = inner + 3, w_stride = inner + 5, y_stride = outputs + 2;
        const auto x = guarded(randoms(random, static_cast<size_t>(count * x_stride)));
        const auto w = guarded(randoms(random, static_cast<size_t>(outputs * w_stride)));
        const auto bias = guarded(randoms(random, static_cast<size_t>(outputs)));
        Guarded<float> y(static_cast<size_t>(count * y_stride)), plain(static_cast<size_t>(count * y_stride)),
            alone(static_cast<size_t>(outputs));
        rows::Projection p;
        p.inner = inner;
        p.x_rows = count;
        p.x_stride = x_stride;
        p.w_stride = w_stride;
        p.y_stride = y_stride;
        p.x = x.data();
        p.w = w.data();
        p.bias = bias.data();
        p.relu = true;
        p.y = y.data();
        const int64_t middle = outputs / 2;  // two threads
        kernels->project(p, 0, middle);
        kernels->project(p, middle, outputs);
        p.relu = false;
        p.y = plain.data();
        kernels->project(p, 0, outputs);
        for (int64_t r = 0; r < count; ++r) {
          p.x_rows = 1;
          p.x = x.data() + r * x_stride;
          p.y = alone.data();
          kernels->project(p, 0, outputs);
          for (int64_t n = 0; n < outputs; ++n) {
            double expected = bias[static_cast<size_t>(n)], size = std::abs(expected);
            for (int64_t i = 0; i < inner; ++i) {
              const double product =
                  double{x[static_cast<size_t>(r * x_stride + i)]} * w[static_cast<size_t>(n * w_stride + i)];
              expected += product;
              size += std::abs(product);
            }
            const auto at = static_cast<size_t>(r * y_stride + n);
            EXPECT_NEAR(plain[at], expected, static_cast<double>(inner + 1) * 0x1p-24 * size);
            EXPECT_EQ(y[at], std::max(0.0f, plain[at]));
            EXPECT_EQ(alone[static_cast<size_t>(n)], plain[at]);
          }
        }
      }
}

TEST_P(RowKernels, SoftmaxAddsUpToOne) {
  Random random(3);
  const auto* kernels = this->kernels();
  for (const int64_t width : {1, 2, 15, 16, 17, 33, 1000}) {
    SCOPED_TRACE(testing::Message() << kernels->name << ", width " << width);
    const auto given = randoms(random, static_cast<size_t>(2 * width), 400);
    constexpr float kScale = 0.25f;
    auto x = guarded(given);
    kernels->softmax({width, kScale, x.data()}, 0, 2);
    for (int64_t row = 0; row < 2; ++row) {
      const float* values = given.data() + row * width;
      const double largest = *std::max_element(values, values + width);
      double sum = 0;
      for (int64_t i = 0; i < width; ++i) sum += std::exp(kScale * (values[i] - largest));
      for (int64_t i = 0; i < width; ++i) {
        const double expected = std::exp(kScale * (values[i] - largest)) / sum;
        // Exponents of up to 200 are rounded before exponentiation.
        EXPECT_NEAR(x[static_cast<size_t>(row * width + i)], expected, 200 * 0x1p-23 * expected + 1e-37) << i;
      }
    }
  }
}

TEST_P(RowKernels, SoftmaxGivesEqualValuesEqualShares) {
  for (const size_t width : {1, 9, 16, 17, 23, 40}) {
    auto x = guarded(std::vector<float>(width, -3));
    kernels()->softmax({static_cast<int64_t>(width), 2, x.data()}, 0, 1);
    for (size_t i = 0; i < width; ++i) EXPECT_EQ(x[i], x[0]) << i << " of " << width;
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
