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
#include "tests/kernels/guarded.h"

namespace prism {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();

/// Values of a tensor of type bfloat16 or float32.
class Values {
 public:
  Values(rows::Type type, int64_t count) : type_(type), half_(count), single_(count) {}
  Values(rows::Type type, const std::vector<float>& values) : Values(type, static_cast<int64_t>(values.size())) {
    for (size_t i = 0; i < values.size(); ++i) set(i, values[i]);
  }

  void* data() { return type_ == rows::Type::bfloat16 ? static_cast<void*>(half_.data()) : single_.data(); }
  double operator[](size_t i) const {
    if (type_ == rows::Type::float32) return single_[i];
    return widen(half_[i]);
  }
  void set(size_t i, float value) {
    single_[i] = value;
    half_[i] = narrow(value);
  }

 private:
  rows::Type type_;
  Guarded<uint16_t> half_;
  Guarded<float> single_;
};

std::vector<float> randoms(Random& random, size_t count, double magnitude = 1) {
  std::vector<float> values(count);
  for (auto& value : values) value = static_cast<float>(magnitude * (2 * random.uniform() - 1));
  return values;
}

Guarded<float> guarded(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

/// Half a unit in the last place of the type, relative.
double rounding(rows::Type type) {
  return type == rows::Type::bfloat16 ? 0x1p-9 : 0x1p-24;
}

constexpr int64_t kRows = 3;

class RowKernels : public testing::TestWithParam<std::tuple<Isa, rows::Type>> {
 protected:
  void SetUp() override {
    if (current_isa() < isa()) GTEST_SKIP() << "needs a processor with " << isa_name(isa());
  }
  static Isa isa() { return std::get<0>(GetParam()); }
  static rows::Type type() { return std::get<1>(GetParam()); }
  static const rows::Kernels* kernels() { return rows::kernels_of(isa()); }

  /// Runs `check` at widths around multiples of the vector width.
  template <class Check>
  void sweep(Check check) {
    Random random(1);
    for (const int64_t width : {2, 6, 8, 14, 16, 18, 30, 32, 34, 64, 66, 250}) {
      SCOPED_TRACE(testing::Message() << "width " << width);
      check(*kernels(), width, random);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(, RowKernels,
                         testing::Combine(testing::Values(Isa::avx2, Isa::avx512),
                                          testing::Values(rows::Type::bfloat16, rows::Type::float32)),
                         [](const auto& tested) {
                           return std::string(std::get<0>(tested.param) == Isa::avx2 ? "Avx2" : "Avx512") +
                                  (std::get<1>(tested.param) == rows::Type::bfloat16 ? "Bfloat16" : "Float32");
                         });

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
