// Packed weights and their products, for every instruction set, against double precision, on raw memory.
#include "prism/kernels/packed/packed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "prism/core/random.h"
#include "prism/kernels/quant/float16.h"
#include "prism/kernels/quant/quant.h"
#include "tests/kernels/guarded.h"
#include "tests/kernels/isas.h"

namespace prism {
namespace {

constexpr std::array kTypes = {BlockType::bf16, BlockType::q4_0, BlockType::q4_1,
                               BlockType::q5_0, BlockType::q5_1, BlockType::q8_0};

constexpr double kCodes = 2 * 127 * 128;  // of x in decoding, from -1 to 1

/// Random blocks with scales around 1, whose codes have all values.
std::vector<std::byte> random_blocks(Random& random, BlockType type, int64_t count) {
  const BlockLayout& layout = block_layout(type);
  std::vector<std::byte> bytes(static_cast<size_t>(count * layout.bytes));
  for (auto& byte : bytes) byte = static_cast<std::byte>(random.below(256));
  const bool has_minimum = type == BlockType::q4_1 || type == BlockType::q5_1;
  for (int64_t i = 0; i < count; ++i) {
    auto* block = bytes.data() + i * layout.bytes;
    const auto put = [&](int64_t at, uint16_t bits) { std::memcpy(block + at, &bits, sizeof bits); };
    const auto value = static_cast<float>(2 * random.uniform() - 1);
    put(0, type == BlockType::bf16 ? bf16_of_float(value) : f16_of_float(value));
    if (has_minimum) put(2, f16_of_float(static_cast<float>(16 * random.uniform() - 8)));
  }
  return bytes;
}

/// A weight, packed, and its values.
struct Weights {
  packed::Matrix matrix;
  GuardedScratch memory;
  std::vector<float> values;

  Weights(Random& random, BlockType type, int64_t rows, int64_t inner) : matrix{type, rows, inner, nullptr} {
    const BlockLayout& layout = block_layout(type);
    const int64_t row_bytes = inner / layout.elements * layout.bytes;
    const auto blocks = random_blocks(random, type, rows * inner / layout.elements);
    memory = GuardedScratch(static_cast<size_t>(packed::packed_bytes(matrix)), std::byte{0});
    matrix.data = memory.data();
    for (int64_t row = rows - 1; row >= 0; --row) packed::pack_row(matrix, row, blocks.data() + row * row_bytes);
    values.resize(static_cast<size_t>(rows * inner));
    dequantise(type, blocks, values);
  }
};

TEST(PackedRows, UnpackToTheValuesOfTheirBlocks) {
  Random random(1);
  for (const auto type : kTypes)
    for (const auto& [rows, inner] : {std::pair{1, 32}, {16, 64}, {37, 96}, {50, 320}}) {
      const Weights w(random, type, rows, inner);
      std::vector<float> row(static_cast<size_t>(inner));
      for (int64_t i = 0; i < rows; ++i) {
        packed::unpack_row(w.matrix, i, row.data());
        EXPECT_TRUE(std::equal(row.begin(), row.end(), w.values.begin() + i * inner))
            << block_layout(type).name << " row " << i;
      }
    }
}

TEST(PackedRows, OfBfloat16NeedNoWholeBlocks) {
  Random random(2);
  const Weights w(random, BlockType::bf16, 19, 45);
  std::vector<float> row(45);
  for (int64_t i = 0; i < 19; ++i) {
    packed::unpack_row(w.matrix, i, row.data());
    EXPECT_TRUE(std::equal(row.begin(), row.end(), w.values.begin() + i * 45));
  }
}

struct Role {
  Isa isa;
  bool decodes;
};

/// Y = f(X W^T + bias) with random X.
class Product {
 public:
  Product(Random& random, const Weights& w, int64_t rows, packed::Type type)
      : w_(w), rows_(rows), type_(type), x_stride_(w.matrix.inner + 3), out_stride_(w.matrix.rows + 2) {
    x_.resize(static_cast<size_t>((rows - 1) * x_stride_ + w.matrix.inner), std::numeric_limits<float>::quiet_NaN());
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t k = 0; k < w.matrix.inner; ++k) {
        const auto value = static_cast<float>(2 * random.uniform() - 1);
        x_[static_cast<size_t>(i * x_stride_ + k)] = is_half() ? float_of_bf16(bf16_of_float(value)) : value;
      }
    bias_ = Guarded<float>(static_cast<size_t>(w.matrix.rows));
    for (auto& value : bias_) value = static_cast<float>(2 * random.uniform() - 1);
  }

  bool has_bias = false, has_relu = false, has_single_out = false;

  std::vector<float>& x() { return x_; }
  int64_t x_stride() const { return x_stride_; }

  /// Y of rows `first` to `end`, as float32, one row after the other.
  std::vector<float> multiply(const packed::Kernels& kernels, bool decodes, int threads, int64_t first, int64_t end) {
    const auto begin = static_cast<size_t>(first * x_stride_);
    const auto count = static_cast<size_t>((end - first - 1) * x_stride_ + w_.matrix.inner);
    Guarded<float> x(count), out(static_cast<size_t>((end - first - 1) * out_stride_ + w_.matrix.rows), 77);
    std::copy_n(x_.begin() + static_cast<int64_t>(begin), count, x.begin());
    Guarded<uint16_t> half_x(count), half_out(out.size(), bf16_of_float(77));
    std::transform(x.begin(), x.end(), half_x.begin(), bf16_of_float);
    packed::Problem p;
    p.w = w_.matrix;
    p.type = type_;
    p.rows = end - first;
    p.x = is_half() ? static_cast<const void*>(half_x.data()) : x.data();
    p.x_stride = x_stride_;
    p.out_type = halves_out() ? packed::Type::bfloat16 : packed::Type::float32;
    p.out = halves_out() ? static_cast<void*>(half_out.data()) : out.data();
    p.out_stride = out_stride_;
    p.bias = has_bias ? bias_.data() : nullptr;
    p.relu = has_relu;
    p.threads = threads;
    GuardedScratch scratch((decodes ? kernels.decoding_scratch : kernels.prompt_scratch)(p), std::byte{0xFF});
    p.scratch = scratch.data();
    (decodes ? kernels.multiply_decoding : kernels.multiply_prompt)(p);
    if (halves_out()) std::transform(half_out.begin(), half_out.end(), out.begin(), float_of_bf16);
    std::vector<float> found;
    for (int64_t i = 0; i < end - first; ++i)
      for (int64_t j = 0; j < out_stride_ && (i + 1 < end - first || j < w_.matrix.rows); ++j) {
        const float value = out[static_cast<size_t>(i * out_stride_ + j)];
        if (j < w_.matrix.rows) {
          found.push_back(value);
        } else {
          EXPECT_EQ(value, 77) << "wrote after row " << i;
        }
      }
    return found;
  }
  std::vector<float> multiply(const packed::Kernels& kernels, bool decodes, int threads) {
    return multiply(kernels, decodes, threads, 0, rows_);
  }

  /// The largest error as a share of its bound: sqrt(K) roundings of float32, of W's values if they are rounded to
  /// bfloat16, of x's values if they are rounded to codes, and of the result.
  /// @param has_pairs  pairs of bfloat16 are multiplied. @param missing  leaves out the last column.
  double error_share(const std::vector<float>& found, bool decodes, bool has_pairs, bool missing = false) {
    double most = 0;
    const int64_t inner = w_.matrix.inner;
    const bool rounds_w = w_.matrix.type != BlockType::bf16 && !decodes && has_pairs;
    const bool rounds_x = w_.matrix.type != BlockType::bf16 && decodes;
    // A float32 x is rounded where bfloat16 pairs are multiplied.
    const bool may_round_x = w_.matrix.type == BlockType::bf16 && decodes && has_pairs && !is_half();
    for (int64_t i = 0; i < rows_; ++i)
      for (int64_t j = 0; j < w_.matrix.rows; ++j) {
        double sum = 0, magnitude = 0, rounding = 0;
        for (int64_t k = 0; k < inner; ++k) {
          if (missing && k + 1 == inner) continue;
          const double x = x_[static_cast<size_t>(i * x_stride_ + k)];
          const double w = w_.values[static_cast<size_t>(j * inner + k)];
          sum += x * w;
          magnitude += std::abs(x * w);
          if (rounds_w || may_round_x) rounding += std::pow(std::ldexp(x * w, -9), 2);
          if (rounds_x) rounding += std::pow(w / kCodes, 2);  // half a step of codes of values up to 1
        }
        if (has_bias) sum += bias_[static_cast<size_t>(j)];
        if (has_relu) sum = std::max(sum, 0.0);
        // Six standard deviations of roundings that are uniform.
        const double bound = std::ldexp(magnitude * std::sqrt(static_cast<double>(inner) + 1), -23) +
                             6 * std::sqrt(rounding / 3) + (halves_out() ? std::ldexp(std::abs(sum), -8) : 1e-6);
        most = std::max(most, std::abs(found[static_cast<size_t>(i * w_.matrix.rows + j)] - sum) / bound);
      }
    return most;
  }

 private:
  bool is_half() const { return type_ == packed::Type::bfloat16; }
  bool halves_out() const { return is_half() && !has_single_out; }

  const Weights& w_;
  int64_t rows_;
  packed::Type type_;
  int64_t x_stride_, out_stride_;
  std::vector<float> x_;
  Guarded<float> bias_;
};

class Packed : public IsaTest {
 protected:
  static const packed::Kernels& kernels() { return *packed::kernels_of(GetParam()); }
  /// Other instruction sets widen bfloat16 before they multiply.
  static bool has_pairs() { return GetParam() == Isa::avx512_bf16 || GetParam() == Isa::amx_bf16; }
  /// The types that a role takes.
  static std::vector<packed::Type> types(bool decodes) {
    if (!decodes) return {kernels().prompt_type};
    return {packed::Type::bfloat16, packed::Type::float32};
  }
};

INSTANTIATE_TEST_SUITE_P(, Packed, testing::ValuesIn(isas_from(Isa::avx2)), isa_title);

TEST_P(Packed, ProductsEqualTheDefinition) {
  Random random(3);
  for (const auto type : kTypes)
    for (const bool decodes : {false, true})
      for (const auto x_type : types(decodes))
        for (const auto& [rows, columns, inner] :
             {std::array{1, 16, 32}, {1, 40, 96}, {3, 70, 64}, {5, 130, 608}, {33, 100, 320}, {32, 64, 64}}) {
          const Weights w(random, type, columns, inner);
          Product product(random, w, rows, x_type);
          product.has_single_out = inner == 96 || rows == 33;
          EXPECT_LT(product.error_share(product.multiply(kernels(), decodes, 2), decodes, has_pairs()), 1)
              << block_layout(type).name << (decodes ? " decoding " : " prompt ") << rows << "x" << columns << "x"
              << inner;
        }
}

TEST_P(Packed, ProductsOfLongRowsEqualTheDefinition) {
  Random random(4);
  for (const auto type : kTypes)
    for (const auto& [rows, columns, inner] : {std::array{1, 33, 4640}, {40, 33, 4640}, {400, 20, 2080}}) {
      const Weights w(random, type, columns, inner);
      for (const bool decodes : {false, true}) {
        Product product(random, w, rows, types(decodes)[0]);
        EXPECT_LT(product.error_share(product.multiply(kernels(), decodes, 2), decodes, has_pairs()), 1)
            << block_layout(type).name << (decodes ? " decoding " : " prompt ") << rows;
      }
    }
}

/// Large weights are unpacked part by part: the first several inner parts, the second several parts of its columns.
TEST_P(Packed, ProductsOfLargeWeightsEqualTheDefinition) {
  Random random(9);
  for (const auto type : {BlockType::bf16, BlockType::q4_1, BlockType::q5_0})
    for (const auto& [rows, columns, inner] : {std::array{4, 1100, 4640}, {3, 8300, 512}}) {
      const Weights w(random, type, columns, inner);
      Product product(random, w, rows, types(false)[0]);
      EXPECT_LT(product.error_share(product.multiply(kernels(), false, 2), false, has_pairs()), 1)
          << block_layout(type).name << " " << columns << "x" << inner;
    }
}

TEST_P(Packed, ProductsOfBfloat16NeedNoWholeBlocks) {
  Random random(10);
  for (const auto& [rows, columns, inner] : {std::array{3, 70, 50}, {40, 20, 2070}}) {
    const Weights w(random, BlockType::bf16, columns, inner);
    Product product(random, w, rows, types(false)[0]);
    EXPECT_LT(product.error_share(product.multiply(kernels(), false, 2), false, has_pairs()), 1) << inner;
  }
}

TEST_P(Packed, ProductsTakeABiasAndDropWhatIsNegative) {
  Random random(5);
  for (const auto type : {BlockType::bf16, BlockType::q4_1})
    for (const bool decodes : {false, true})
      for (const int rows : {1, 7, 32}) {
        const Weights w(random, type, 70, 96);
        Product product(random, w, rows, types(decodes)[0]);
        product.has_bias = true;
        product.has_relu = rows > 1;
        EXPECT_LT(product.error_share(product.multiply(kernels(), decodes, 2), decodes, has_pairs()), 1);
      }
}

/// What a row gets must not depend on its company.
TEST_P(Packed, ARowHasTheSameBitsAloneInAnyCallAndWithAnyNumberOfThreads) {
  Random random(6);
  for (const auto type : kTypes)
    for (const bool decodes : {false, true})
      for (const auto& [rows, inner] : {std::pair{15, 608}, {50, 2080}, {1600, 64}}) {
        const Weights w(random, type, 90, inner);
        Product product(random, w, rows, types(decodes)[0]);
        const auto all = product.multiply(kernels(), decodes, 1);
        EXPECT_EQ(product.multiply(kernels(), decodes, 3), all);
        for (int64_t row = 0; row < rows; row += rows == 15 ? 1 : rows / 5) {
          const auto alone = product.multiply(kernels(), decodes, 2, row, row + 1);
          EXPECT_TRUE(std::equal(alone.begin(), alone.end(), all.begin() + row * 90))
              << block_layout(type).name << (decodes ? " decoding" : " prompt") << " row " << row << " of " << rows;
        }
      }
}

TEST_P(Packed, ExceedsItsBoundWhenOneColumnIsMissing) {
  Random random(7);
  for (const auto type : kTypes)
    for (const bool decodes : {false, true}) {
      const Weights w(random, type, 40, 96);
      Product product(random, w, 5, types(decodes)[0]);
      const auto found = product.multiply(kernels(), decodes, 1);
      EXPECT_GT(product.error_share(found, decodes, has_pairs(), /*missing=*/true), 1)
          << block_layout(type).name << (decodes ? " decoding" : " prompt");
    }
}

TEST_P(Packed, ANonFiniteValueStaysInItsRow) {
  Random random(8);
  for (const auto type : kTypes)
    for (const bool decodes : {false, true})
      for (const float value : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        const Weights w(random, type, 20, 64);
        Product product(random, w, 3, types(decodes)[0]);
        product.x()[static_cast<size_t>(product.x_stride() + 33)] = value;
        product.x()[static_cast<size_t>(product.x_stride() + 34)] = value;
        const auto found = product.multiply(kernels(), decodes, 1);
        for (size_t i = 0; i < found.size(); ++i) {
          // A weight of 0 makes no infinity in a sum of products, but a NaN.
          EXPECT_EQ(std::isfinite(found[i]), i / 20 != 1) << block_layout(type).name << (decodes ? " decoding" : "");
        }
      }
}

TEST_P(Packed, BlocksOfXHaveScalesOfTheirOwn) {
  Random random(11);
  for (const auto type : kTypes) {
    if (type == BlockType::bf16) continue;  // x has no codes
    const Weights w(random, type, 20, 64);
    Product product(random, w, 1, packed::Type::float32);
    auto& x = product.x();
    // Whole numbers up to kCodes / 2 are codes of scale 1. In the block beside them, a scale of 1 would leave zeros.
    for (size_t k = 0; k < 64; ++k) x[k] = k < 32 ? std::round(8000 * x[k]) : x[k] / 16;
    x[3] = kCodes / 2;
    const auto found = product.multiply(kernels(), true, 1);
    for (size_t j = 0; j < 20; ++j) {
      double sum = 0, largest = 0, magnitude = 0;
      for (size_t k = 0; k < 64; ++k) {
        const double w_k = w.values[j * 64 + k];
        sum += static_cast<double>(x[k]) * w_k;
        magnitude += std::abs(static_cast<double>(x[k]) * w_k);
        largest = std::max(largest, std::abs(w_k));
      }
      // Half a step of 1/16 / (kCodes / 2) for 32 values, and roundings of float32.
      EXPECT_NEAR(found[j], sum, largest * 32 / 16 / kCodes + std::ldexp(magnitude, -22)) << block_layout(type).name;
    }
  }
}

TEST_P(Packed, TinyValuesOfXCountAsZeros) {
  Random random(9);
  for (const auto type : kTypes) {
    if (type == BlockType::bf16) continue;
    const Weights w(random, type, 20, 64);
    Product product(random, w, 1, packed::Type::float32);
    auto& x = product.x();
    std::fill(x.begin(), x.end(), 0x1.8p-101f);  // just below the limit
    for (const float found : product.multiply(kernels(), true, 1)) EXPECT_EQ(found, 0) << block_layout(type).name;
    std::fill(x.begin(), x.begin() + 32, -0x1p-100f);
    const auto found = product.multiply(kernels(), true, 1);
    for (size_t j = 0; j < found.size(); ++j) {
      double sum = 0, magnitude = 0;
      for (size_t k = 0; k < 32; ++k) sum -= w.values[j * 64 + k], magnitude += std::abs(w.values[j * 64 + k]);
      EXPECT_NEAR(std::ldexp(static_cast<double>(found[j]), 100), sum, std::ldexp(magnitude, -20))
          << block_layout(type).name;
    }
  }
}

/// Codes of x and of W at their ends, where sums of integers are largest.
TEST_P(Packed, SumsOfTheLargestCodesFit) {
  Random random(12);
  for (const auto type : kTypes) {
    if (type == BlockType::bf16) continue;
    const BlockLayout& layout = block_layout(type);
    for (const int byte : {0x00, 0x7F, 0x80, 0xFF})
      for (const float x : {1.0f, -1.0f}) {
        Weights w(random, type, 16, 32);
        auto blocks = random_blocks(random, type, 16);
        for (int64_t row = 0; row < 16; ++row) {
          auto* block = blocks.data() + row * layout.bytes;
          const int64_t first = packed::has_minimum(type) ? 4 : 2;  // after the scale and the minimum
          std::fill(block + first, block + layout.bytes, static_cast<std::byte>(byte));
          packed::pack_row(w.matrix, row, block);
        }
        dequantise(type, blocks, w.values);
        Product product(random, w, 9, packed::Type::float32);  // passes of eight rows and of one
        std::fill(product.x().begin(), product.x().end(), x);
        EXPECT_LT(product.error_share(product.multiply(kernels(), true, 1), true, has_pairs()), 1)
            << layout.name << " " << byte << " " << x;
      }
  }
}

}  // namespace
}  // namespace prism
