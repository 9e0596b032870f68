#include "prism/core/numbers/block_type.h"

#include <algorithm>
#include <array>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/text/names.h"

namespace prism {
namespace {

constexpr std::array kLayouts = {
    BlockLayout{BlockType::f32, "F32", 1, 4},         BlockLayout{BlockType::f16, "F16", 1, 2},
    BlockLayout{BlockType::q4_0, "Q4_0", 32, 18},     BlockLayout{BlockType::q4_1, "Q4_1", 32, 20},
    BlockLayout{BlockType::q5_0, "Q5_0", 32, 22},     BlockLayout{BlockType::q5_1, "Q5_1", 32, 24},
    BlockLayout{BlockType::q8_0, "Q8_0", 32, 34},     BlockLayout{BlockType::q2_k, "Q2_K", 256, 84},
    BlockLayout{BlockType::q3_k, "Q3_K", 256, 110},   BlockLayout{BlockType::q4_k, "Q4_K", 256, 144},
    BlockLayout{BlockType::q5_k, "Q5_K", 256, 176},   BlockLayout{BlockType::q6_k, "Q6_K", 256, 210},
    BlockLayout{BlockType::iq4_nl, "IQ4_NL", 32, 18}, BlockLayout{BlockType::bf16, "BF16", 1, 2},
};

/// ggml's other types, for messages only. Those that later versions removed are included.
constexpr std::pair<uint32_t, std::string_view> kOtherTypes[] = {
    {4, "Q4_2"},        {5, "Q4_3"},      {9, "Q8_1"},   {15, "Q8_K"},  {16, "IQ2_XXS"},    {17, "IQ2_XS"},
    {18, "IQ3_XXS"},    {19, "IQ1_S"},    {21, "IQ3_S"}, {22, "IQ2_S"}, {23, "IQ4_XS"},     {24, "I8"},
    {25, "I16"},        {26, "I32"},      {27, "I64"},   {28, "F64"},   {29, "IQ1_M"},      {31, "Q4_0_4_4"},
    {32, "Q4_0_4_8"},   {33, "Q4_0_8_8"}, {34, "TQ1_0"}, {35, "TQ2_0"}, {36, "IQ4_NL_4_4"}, {37, "IQ4_NL_4_8"},
    {38, "IQ4_NL_8_8"}, {39, "MXFP4"},    {40, "NVFP4"}, {41, "Q1_0"},
};

std::string other_type_name(uint32_t number) {
  for (const auto& [other, name] : kOtherTypes)
    if (other == number) return fmt::format(" ({})", name);
  return "";
}

}  // namespace

std::span<const BlockLayout> block_layouts() {
  return kLayouts;
}

const BlockLayout& block_layout(BlockType type) {
  const auto* row =
      std::find_if(kLayouts.begin(), kLayouts.end(), [&](const BlockLayout& layout) { return layout.type == type; });
  PRISM_ASSERT(row != kLayouts.end(), "block_type", "no layout for type {}", static_cast<uint32_t>(type));
  return *row;
}

BlockType find_block_type(uint32_t number, std::string_view operation, std::string_view where) {
  for (const BlockLayout& layout : kLayouts)
    if (static_cast<uint32_t>(layout.type) == number) return layout.type;
  std::vector<std::string> names;
  for (const BlockLayout& layout : kLayouts) names.emplace_back(layout.name);
  throw InputError(operation, fmt::format("{}: expected a type that is one of {}; found ggml's type {}{}; convert the "
                                          "file to one of them.",
                                          where, join_names(names), number, other_type_name(number)));
}

std::optional<int64_t> block_tensor_bytes(BlockType type, const std::vector<int64_t>& shape) {
  const BlockLayout& layout = block_layout(type);
  const int64_t row = shape.empty() ? 1 : shape.back();
  if (row % layout.elements != 0) return std::nullopt;
  int64_t values = 1;
  bool is_empty = false;
  for (const int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(values, std::max<int64_t>(size, 1), &values)) return std::nullopt;
    is_empty = is_empty || size == 0;
  }
  if (is_empty) values = 0;
  int64_t bytes = 0;
  if (__builtin_mul_overflow(values / layout.elements, layout.bytes, &bytes)) return std::nullopt;
  return bytes;
}

}  // namespace prism
