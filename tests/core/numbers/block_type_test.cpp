#include "prism/core/numbers/block_type.h"

#include <gtest/gtest.h>

#include <set>

#include "prism/core/error.h"
#include "tests/core/message_of.h"

namespace prism {
namespace {

TEST(BlockType, HasGgmlsNumberNameAndSizes) {
  const BlockLayout& layout = block_layout(BlockType::q4_k);
  EXPECT_EQ(layout.name, "Q4_K");
  EXPECT_EQ(layout.elements, 256);
  EXPECT_EQ(layout.bytes, 144);
  std::set<uint32_t> numbers;
  for (const BlockLayout& each : block_layouts()) {
    const auto number = static_cast<uint32_t>(each.type);
    EXPECT_TRUE(numbers.insert(number).second) << each.name;
    EXPECT_EQ(find_block_type(number, "test", "a file"), each.type);
    EXPECT_EQ(&block_layout(each.type), &each);
  }
  EXPECT_EQ(numbers, (std::set<uint32_t>{0, 1, 2, 3, 6, 7, 8, 10, 11, 12, 13, 14, 20, 30}));
}

TEST(BlockType, IsRefusedByNumberAndNameIfItIsNotKnown) {
  EXPECT_REFUSED(find_block_type(16, "gguf", "model.gguf: output.weight"),
                 "[gguf] model.gguf: output.weight: expected a type that is one of F32, F16, Q4_0, Q4_1, Q5_0, Q5_1, "
                 "Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ4_NL and BF16; found ggml's type 16 (IQ2_XXS); convert");
  EXPECT_REFUSED(find_block_type(24, "gguf", "x"), "found ggml's type 24 (I8);");
  EXPECT_REFUSED(find_block_type(4000, "gguf", "x"), "found ggml's type 4000; convert");
}

TEST(BlockTensorBytes, CountsBlocksOfWholeRows) {
  EXPECT_EQ(block_tensor_bytes(BlockType::f32, {}), 4);
  EXPECT_EQ(block_tensor_bytes(BlockType::bf16, {3, 5}), 30);
  EXPECT_EQ(block_tensor_bytes(BlockType::q8_0, {3, 64}), 3 * 2 * 34);
  EXPECT_EQ(block_tensor_bytes(BlockType::q8_0, {0, 64}), 0);
  EXPECT_EQ(block_tensor_bytes(BlockType::q8_0, {64, 3}), std::nullopt)
      << "64 x 3 values are whole blocks, rows are not";
  EXPECT_EQ(block_tensor_bytes(BlockType::q8_0, {}), std::nullopt);
}

TEST(BlockTensorBytes, AreAbsentIfTheyOverflow) {
  constexpr int64_t kHuge = int64_t{1} << 40;
  EXPECT_EQ(block_tensor_bytes(BlockType::f32, {-1, 2}), std::nullopt);
  EXPECT_EQ(block_tensor_bytes(BlockType::f32, {kHuge, kHuge}), std::nullopt);
  EXPECT_EQ(block_tensor_bytes(BlockType::f32, {kHuge, 1 << 21}), std::nullopt) << "2^61 values, 2^63 bytes";
  EXPECT_EQ(block_tensor_bytes(BlockType::f32, {kHuge, 1 << 20}), int64_t{1} << 62);
  EXPECT_EQ(block_tensor_bytes(BlockType::q4_0, {kHuge, 1 << 22}), int64_t{18} << 57) << "4.5 bits per value";
  EXPECT_EQ(block_tensor_bytes(BlockType::f32, {kHuge, kHuge, 0}), std::nullopt);
}

}  // namespace
}  // namespace prism
