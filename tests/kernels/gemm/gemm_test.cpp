// The matrix products of every instruction set against double precision, on raw memory.
#include "prism/kernels/gemm/gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "prism/core/random.h"
#include "prism/kernels/simd/range.h"
#include "tests/kernels/bfloat16.h"
#include "tests/kernels/guarded.h"
#include "tests/kernels/isas.h"

namespace prism {
namespace {

struct Shape {
  int64_t rows, columns, inner;
  bool a_transposed, b_transposed, half_out, accumulate;
  gemm::Type type = gemm::Type::bfloat16;

  friend std::ostream& operator<<(std::ostream& out, const Shape& s) {
    return out << s.rows << "x" << s.columns << "x" << s.inner << (s.a_transposed ? " A^T" : "")
               << (s.b_transposed ? " B^T" : "") << (s.half_out ? " to bf16" : "") << (s.accumulate ? " +=" : "")
               << (s.type == gemm::Type::float32 ? " of float32" : "");
  }
};

/// A matrix of random values with rows `stride` apart. Gaps between rows are NaN; there is no gap after the last row.
struct Stored {
  bool transposed, single;
  int64_t lines, width, stride;
  Guarded<uint16_t> halves;
  Guarded<float> singles;

  Stored(Random& random, int64_t rows, int64_t columns, bool transposed_, gemm::Type type)
      : transposed(transposed_),
        single(type == gemm::Type::float32),
        lines(transposed ? columns : rows),
        width(transposed ? rows : columns),
        stride(width + static_cast<int64_t>(random.below(5))),
        halves(static_cast<size_t>((lines - 1) * stride + width), 0x7FC0),
        singles(halves.size(), std::numeric_limits<float>::quiet_NaN()) {
    for (int64_t i = 0; i < lines; ++i)
      for (int64_t j = 0; j < width; ++j) {
        const auto at = static_cast<size_t>(i * stride + j);
        singles[at] = static_cast<float>(2 * random.uniform() - 1);
        halves[at] = narrow(singles[at]);
      }
  }

  double at(int64_t row, int64_t column) const {
    const auto place = static_cast<size_t>(transposed ? column * stride + row : row * stride + column);
    return single ? singles[place] : widen(halves[place]);
  }
  gemm::Matrix matrix() const {
    return {single ? static_cast<const void*>(singles.data()) : halves.data(), stride, transposed};
  }
};

class Product {
 public:
  Product(const Shape& shape, uint64_t seed)
      : shape_(shape),
        random_(seed),
        a_(random_, shape.rows, shape.inner, shape.a_transposed, shape.type),
        b_(random_, shape.inner, shape.columns, shape.b_transposed, shape.type),
        stride_(shape.columns + static_cast<int64_t>(random_.below(3))) {
    before_.resize(static_cast<size_t>((shape.rows - 1) * stride_ + shape.columns));
    for (auto& value : before_) value = static_cast<float>(random_.uniform());
  }

  /// Changes the product to C = A B + bias, or max(0, .) of that.
  void add_bias(bool relu) {
    bias_ = Guarded<float>(static_cast<size_t>(shape_.columns));
    for (auto& value : bias_) value = static_cast<float>(6 * random_.uniform() - 3);
    relu_ = relu;
  }

  /// C as float32. @param stale  initial bytes of the scratch memory; 0xFF bytes are NaN in any type.
  std::vector<float> multiply(const gemm::Kernels& kernels, int threads, uint8_t stale = 0xFF) {
    gemm::Problem p = problem(threads);
    GuardedScratch scratch(kernels.scratch_bytes(p), std::byte{stale});
    p.scratch = scratch.data();
    Guarded<float> out(before_.begin(), before_.end());
    Guarded<uint16_t> half(out.size());
    std::transform(out.begin(), out.end(), half.begin(), narrow);
    p.out = shape_.half_out ? static_cast<void*>(half.data()) : out.data();
    kernels.multiply(p);
    if (shape_.half_out) std::transform(half.begin(), half.end(), out.begin(), widen);
    return {out.begin(), out.end()};
  }

  /// Allows sqrt(K) float32 units of the sum of magnitudes, since the roundings of K products are independent, plus one
  /// unit of the result's type.
  void expect_close(const std::vector<float>& found) {
    for (int64_t i = 0; i < shape_.rows; ++i) {
      for (int64_t j = 0; j < stride_; ++j) {
        const auto index = static_cast<size_t>(i * stride_ + j);
        if (index >= found.size()) break;
        if (j >= shape_.columns) {
          const float kept = shape_.half_out ? widen(narrow(before_[index])) : before_[index];
          ASSERT_EQ(found[index], kept) << shape_ << ": wrote after row " << i;
          continue;
        }
        double sum = shape_.accumulate ? before_[index] : 0, magnitude = std::abs(sum);
        for (int64_t k = 0; k < shape_.inner; ++k) {
          sum += a_.at(i, k) * b_.at(k, j);
          magnitude += std::abs(a_.at(i, k) * b_.at(k, j));
        }
        if (!bias_.empty()) {
          sum += bias_[static_cast<size_t>(j)];
          magnitude += std::abs(bias_[static_cast<size_t>(j)]);
        }
        if (relu_) sum = std::max(sum, 0.0);
        ASSERT_NEAR(found[index], sum, bound_of(sum, magnitude)) << shape_ << " at " << i << ", " << j;
      }
    }
  }

  /// The largest difference, over all sums, between a result and the sum without its last product, as a share of the
  /// bound.
  double missing_share(const std::vector<float>& found) {
    double most = 0;
    for (int64_t i = 0; i < shape_.rows; ++i)
      for (int64_t j = 0; j < shape_.columns; ++j) {
        double sum = 0, magnitude = 0;
        for (int64_t k = 0; k + 1 < shape_.inner; ++k) {
          sum += a_.at(i, k) * b_.at(k, j);
          magnitude += std::abs(a_.at(i, k) * b_.at(k, j));
        }
        const double error = std::abs(found[static_cast<size_t>(i * stride_ + j)] - sum);
        most = std::max(most, error / bound_of(sum, magnitude));
      }
    return most;
  }

 private:
  double bound_of(double sum, double magnitude) const {
    return std::ldexp(magnitude * std::sqrt(static_cast<double>(shape_.inner) + 1), -23) +
           (shape_.half_out ? std::ldexp(std::abs(sum), -8) : 0);
  }

  gemm::Problem problem(int threads) {
    gemm::Problem p;
    p.type = shape_.type;
    p.out_type = shape_.half_out ? gemm::Type::bfloat16 : gemm::Type::float32;
    p.rows = shape_.rows;
    p.columns = shape_.columns;
    p.inner = shape_.inner;
    p.a = a_.matrix();
    p.b = b_.matrix();
    p.out_stride = stride_;
    p.accumulate = shape_.accumulate;
    p.threads = threads;
    p.bias = !bias_.empty() ? bias_.data() : nullptr;
    p.relu = relu_;
    return p;
  }

  Shape shape_;
  Random random_;
  Stored a_, b_;
  int64_t stride_;
  std::vector<float> before_;
  Guarded<float> bias_;
  bool relu_ = false;
};

class Gemm : public IsaTest {
 protected:
  static const gemm::Kernels& kernels() { return *gemm::kernels_of(GetParam()); }

  /// out [size, size] of float32 = a [size, inner] b [inner, size], or += that.
  static void multiply_square(gemm::Type type, const void* a, const void* b, int64_t inner, int64_t size,
                              bool accumulate, Guarded<float>& out) {
    gemm::Problem p;
    p.type = type;
    p.rows = p.columns = size;
    p.inner = inner;
    p.a = {a, inner, false};
    p.b = {b, size, false};
    p.out = out.data();
    p.out_stride = size;
    p.accumulate = accumulate;
    GuardedScratch scratch(kernels().scratch_bytes(p), std::byte{0xFF});
    p.scratch = scratch.data();
    kernels().multiply(p);
  }
};

constexpr gemm::Type kTypes[] = {gemm::Type::bfloat16, gemm::Type::float32};

INSTANTIATE_TEST_SUITE_P(, Gemm, testing::Values(Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::amx_bf16), isa_title);

TEST_P(Gemm, EqualsTheDefinitionInEveryLayout) {
  for (const bool a_transposed : {false, true})
    for (const bool b_transposed : {false, true})
      for (const bool half_out : {false, true})
        for (const bool accumulate : {false, true}) {
          if (half_out && accumulate) continue;
          // In the first shape no size is a multiple of a tile. In the others rows and inner are, so AMX reads A in
          // place.
          for (const auto& [rows, columns, inner] :
               {std::array{67, 83, 130}, {64, 96, 64}, {48, 80, 96}, {80, 33, 32}, {208, 64, 32}}) {
            for (const auto type : kTypes) {
              Product product({rows, columns, inner, a_transposed, b_transposed, half_out, accumulate, type}, 1);
              product.expect_close(product.multiply(kernels(), 2));
            }
          }
        }
}

TEST_P(Gemm, EqualsTheDefinitionBeyondOneBlockOfEveryAxis) {
  // More rows than a block, more columns than a group, an inner axis of three passes, and more of b than is packed at
  // a time.
  constexpr auto kSingle = gemm::Type::float32;
  for (const Shape& shape :
       {Shape{205, 301, 4999, false, true, true, false}, Shape{111, 301, 4999, true, false, false, true, kSingle},
        Shape{17, 8300, 2101, false, false, true, false}, Shape{9, 270, 17000, true, false, true, false, kSingle},
        Shape{208, 301, 2112, false, true, true, false}, Shape{208, 301, 2112, false, true, false, true, kSingle},
        Shape{16, 8300, 2112, false, false, true, false}, Shape{32, 270, 17024, false, false, false, false, kSingle}}) {
    Product product(shape, 2);
    product.expect_close(product.multiply(kernels(), 2));
  }
}

TEST_P(Gemm, AddsABiasAndDropsWhatIsNegative) {
  for (const bool relu : {false, true})
    for (const auto& [rows, columns, inner] :
         {std::array{67, 83, 130}, {64, 96, 64}, {80, 33, 32}, {32, 40, 4224}, {9, 270, 5001}}) {
      for (const auto type : kTypes) {
        Product product({rows, columns, inner, false, true, type == gemm::Type::bfloat16, false, type}, 5);
        product.add_bias(relu);
        product.expect_close(product.multiply(kernels(), 2));
      }
    }
}

TEST_P(Gemm, EqualsTheDefinitionForRandomShapes) {
  Random random(3);
  const auto size = [&](uint64_t most) { return static_cast<int64_t>(1 + random.below(most)); };
  for (int i = 0; i < 300; ++i) {
    Shape shape{size(120),
                size(150),
                size(i % 10 == 0 ? 1500 : 90),
                random.below(2) == 0,
                random.below(2) == 0,
                i % 2 == 0,
                i % 4 == 1,
                kTypes[i / 4 % 2]};
    if (i % 3 == 0) shape.rows = simd::round_up(shape.rows, 16), shape.inner = simd::round_up(shape.inner, 32);
    Product product(shape, static_cast<uint64_t>(i));
    product.expect_close(product.multiply(kernels(), 1 + i % 3));
  }
}

TEST_P(Gemm, HasTheSameBitsForEveryNumberOfThreadsAndWhateverScratchMemoryHeld) {
  for (const bool a_transposed : {false, true}) {
    for (const bool half_out : {false, true}) {
      for (const auto& [rows, inner] : {std::pair{333, 4501}, {336, 2112}}) {
        Product product({rows, 700, inner, a_transposed, false, half_out, false, kTypes[half_out ? 0 : 1]}, 4);
        const auto one = product.multiply(kernels(), 1);
        EXPECT_EQ(product.multiply(kernels(), 2, 0x00), one);
        EXPECT_EQ(product.multiply(kernels(), 5, 0x7F), one);
      }
    }
  }
}

TEST_P(Gemm, ExceedsItsBoundWhenOneProductIsMissing) {
  for (const auto& [rows, columns, inner] : {std::array{20, 30, 130}, {20, 30, 4999}, {64, 64, 2112}}) {
    for (const auto type : kTypes) {
      Product product({rows, columns, inner, false, true, false, false, type}, 6);
      EXPECT_GT(product.missing_share(product.multiply(kernels(), 1)), 1);
    }
  }
}

/// Products of one sign: a sum kept in registers to its end rounds thousands of times at up to its own size.
TEST_P(Gemm, RoundsLongSumsOfFloat32AtTheSizeOfBlocks) {
  constexpr int64_t kSize = 64, kInner = 4095;
  Random random(7);
  Guarded<float> a(kSize * kInner), b(kInner * kSize), out(kSize * kSize);
  for (auto* values : {&a, &b}) std::generate(values->begin(), values->end(), [&] { return random.uniform(); });
  multiply_square(gemm::Type::float32, a.data(), b.data(), kInner, kSize, /*accumulate=*/false, out);
  double squares = 0;
  for (int64_t i = 0; i < kSize; ++i) {
    for (int64_t j = 0; j < kSize; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < kInner; ++k)
        sum += double{a[static_cast<size_t>(i * kInner + k)]} * b[static_cast<size_t>(k * kSize + j)];
      const double error = out[static_cast<size_t>(i * kSize + j)] / sum - 1;
      squares += error * error;
    }
  }
  // In units of half a last place: 1.7 with the blocks of Cut, 3.7 (AVX-512) and 14 (AVX2) with panels as long as fit.
  EXPECT_LT(std::sqrt(squares / (kSize * kSize)), std::ldexp(2.5, -24));
}

/// Values below the smallest normal number count as 0, which causes a bounded error (gemm.h).
TEST_P(Gemm, LosesNoMoreThanTheSmallestNormalNumbers) {
  constexpr int64_t kSize = 40, kInner = 64;
  constexpr float kTiny = 0x1p-130f;
  const Guarded<uint16_t> a(kSize * kInner, narrow(0x1p-100f)), b(kInner * kSize, narrow(0x1p-29f));
  Guarded<float> out(kSize * kSize, kTiny);
  multiply_square(gemm::Type::bfloat16, a.data(), b.data(), kInner, kSize, /*accumulate=*/true, out);
  for (const float found : out) {
    ASSERT_GE(found, 0);
    ASSERT_NEAR(found, double{kTiny} + kInner * 0x1p-129, (kInner + 1) * 0x1p-126);
  }
}

}  // namespace
}  // namespace prism
