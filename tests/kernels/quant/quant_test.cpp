#include "prism/kernels/quant/quant.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "prism/core/error.h"
#include "prism/formats/safetensors.h"
#include "prism/kernels/quant/float16.h"
#include "tests/core/message_of.h"

namespace prism {
namespace {

const SafetensorsReader& fixture() {
  static const SafetensorsReader reader(PRISM_SOURCE_DIR "/tests/kernels/quant/fixtures/blocks.safetensors");
  return reader;
}

std::string lower_name(const BlockLayout& layout) {
  std::string name(layout.name);
  std::transform(name.begin(), name.end(), name.begin(), [](char letter) { return std::tolower(letter); });
  return name;
}

template <class Value>
std::vector<Value> values_of(std::span<const std::byte> bytes) {
  std::vector<Value> values(bytes.size() / sizeof(Value));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(Value));
  return values;
}

std::vector<float> dequantised(BlockType type, std::span<const std::byte> bytes) {
  const BlockLayout& layout = block_layout(type);
  std::vector<float> floats(bytes.size() / static_cast<size_t>(layout.bytes) * static_cast<size_t>(layout.elements));
  dequantise(type, bytes, floats);
  return floats;
}

/// The number of values whose bits differ. Two NaNs are equal if `any_nan`.
size_t differences(const std::vector<float>& a, const std::vector<float>& b, bool any_nan) {
  if (a.size() != b.size()) return std::max(a.size(), b.size());
  size_t count = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (any_nan && std::isnan(a[i]) && std::isnan(b[i])) continue;
    count += std::bit_cast<uint32_t>(a[i]) != std::bit_cast<uint32_t>(b[i]);
  }
  return count;
}

// The fixture holds blocks with zero, subnormal, largest, infinite and NaN scales.
TEST(Dequantise, EqualsThePackageGgufBitForBitForEveryType) {
  for (const BlockLayout& layout : block_layouts()) {
    SCOPED_TRACE(layout.name);
    const TensorEntry& blocks = fixture().find(lower_name(layout) + ".bytes");
    const auto expected = values_of<float>(fixture().find(lower_name(layout) + ".floats").data);
    ASSERT_GE(expected.size(), 512u);
    // Only arithmetic may change a NaN.
    EXPECT_EQ(differences(dequantised(layout.type, blocks.data), expected, /*any_nan=*/layout.elements > 1), 0u);
  }
}

TEST(Dequantise, DependsOnEveryBitOfABlock) {
  for (const BlockLayout& layout : block_layouts()) {
    SCOPED_TRACE(layout.name);
    // The last block of the fixture has usual scales. No group's scale may be 0, since nothing else would matter then.
    const auto blocks = fixture().find(lower_name(layout) + ".bytes").data;
    const auto last = blocks.last(static_cast<size_t>(layout.bytes));
    std::vector<std::byte> block(last.begin(), last.end());
    for (std::byte& byte : block) byte |= std::byte{0x11};
    const auto before = dequantised(layout.type, block);
    for (size_t bit = 0; bit < block.size() * 8; ++bit) {
      auto changed = block;
      changed[bit / 8] ^= std::byte{1} << (bit % 8);
      EXPECT_GT(differences(dequantised(layout.type, changed), before, false), 0u) << "bit " << bit;
    }
  }
}

TEST(Dequantise, TreatsSizesThatDoNotMatchAsABug) {
  std::vector<std::byte> bytes(36);
  std::vector<float> floats(64);
  const std::span all(floats);
  EXPECT_NO_THROW(dequantise(BlockType::q4_0, bytes, all));
  EXPECT_NO_THROW(dequantise(BlockType::q4_0, {}, {}));
  EXPECT_THROW(dequantise(BlockType::q4_0, std::span(bytes).first(35), all), InternalError);
  EXPECT_THROW(dequantise(BlockType::q4_0, bytes, all.first(63)), InternalError);
  EXPECT_THROW(dequantise(BlockType::q4_0, bytes, all.first(32)), InternalError);
  EXPECT_THROW(dequantise(static_cast<BlockType>(5), bytes, all), InternalError);
}

// The values include halfway cases of each rounding, and blocks that are zero, tiny, huge or not finite.
TEST(Quantise, EqualsThePackageGgufBitForBit) {
  for (const BlockType type : {BlockType::f32, BlockType::f16, BlockType::bf16, BlockType::q8_0}) {
    const BlockLayout& layout = block_layout(type);
    SCOPED_TRACE(layout.name);
    const auto values = values_of<float>(fixture().find(lower_name(layout) + ".values").data);
    const auto expected = values_of<uint8_t>(fixture().find(lower_name(layout) + ".packed").data);
    std::vector<uint8_t> packed(expected.size());
    quantise(type, values, std::as_writable_bytes(std::span(packed)));
    for (size_t i = 0; i < packed.size(); ++i)
      ASSERT_EQ(packed[i], expected[i]) << "byte " << i % static_cast<size_t>(layout.bytes) << " of block "
                                        << i / static_cast<size_t>(layout.bytes);
  }
}

TEST(Quantise, RefusesTypesThatItCannotWrite) {
  std::vector<float> floats(32);
  std::vector<std::byte> bytes(18);
  EXPECT_REFUSED(quantise(BlockType::q4_0, floats, bytes),
                 "[quantise] expected a type that prism writes: F32, F16, BF16 and Q8_0; found Q4_0; choose one");
}

TEST(Quantise, TreatsSizesThatDoNotMatchAsABug) {
  std::vector<float> floats(33);
  std::vector<std::byte> bytes(34);
  EXPECT_THROW(quantise(BlockType::q8_0, floats, bytes), InternalError);
  EXPECT_THROW(quantise(BlockType::q8_0, std::span(floats).first(32), std::span(bytes).first(33)), InternalError);
  EXPECT_NO_THROW(quantise(BlockType::q8_0, std::span(floats).first(32), bytes));
}

/// The value of 16 bits by the definition of binary16. @return NaN for a NaN.
double defined_f16(uint16_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  const double sign = bits >> 15 ? -1 : 1;
  if (exponent == 31) return fraction != 0 ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}

TEST(Float16, HasTheDefinedValueForAllBits) {
  for (uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = float_of_f16(half);
    const double expected = defined_f16(half);
    ASSERT_EQ(std::isnan(value), std::isnan(expected)) << bits;
    ASSERT_EQ(std::signbit(value), (bits & 0x8000u) != 0) << bits;
    if (std::isnan(value)) continue;
    ASSERT_EQ(value, expected) << bits;
    ASSERT_EQ(f16_of_float(value), half) << bits;
  }
}

TEST(Float16, RoundsToTheNearestAndHalvesToEven) {
  for (uint16_t half = 0; half < 0x7BFF; ++half) {
    const auto next = static_cast<uint16_t>(half + 1);
    const auto middle = static_cast<float>((defined_f16(half) + defined_f16(next)) / 2);  // exact in float32
    const uint16_t even = half % 2 == 0 ? half : next;
    ASSERT_EQ(f16_of_float(middle), even) << half;
    ASSERT_EQ(f16_of_float(-middle), even | 0x8000) << half;
    ASSERT_EQ(f16_of_float(std::nextafter(middle, 0.0f)), half) << half;
    ASSERT_EQ(f16_of_float(std::nextafter(middle, 1e9f)), next) << half;
  }
  EXPECT_EQ(f16_of_float(65519.996f), 0x7BFF);
  EXPECT_EQ(f16_of_float(65520.0f), 0x7C00);
}

TEST(Bfloat16, RoundsToTheNearestAndHalvesToEven) {
  for (uint32_t upper = 0; upper < 0x7F7F; ++upper) {
    const uint32_t half = upper << 16 | 0x8000;
    ASSERT_EQ(bf16_of_float(std::bit_cast<float>(half)), upper + upper % 2) << upper;
    ASSERT_EQ(bf16_of_float(std::bit_cast<float>(half - 1)), upper) << upper;
    ASSERT_EQ(bf16_of_float(std::bit_cast<float>(half + 1)), upper + 1) << upper;
    ASSERT_EQ(float_of_bf16(static_cast<uint16_t>(upper)), std::bit_cast<float>(upper << 16)) << upper;
  }
  EXPECT_EQ(bf16_of_float(std::numeric_limits<float>::infinity()), 0x7F80);
  EXPECT_EQ(bf16_of_float(std::bit_cast<float>(0x7F800001u)), 0x7FC0);
}

}  // namespace
}  // namespace prism
