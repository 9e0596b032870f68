// Rows of blocks to strips and back, in plain C++.
#include <algorithm>
#include <cstring>
#include <utility>

#include "prism/core/error.h"
#include "prism/kernels/packed/packed.h"
#include "prism/kernels/quant/float16.h"

namespace prism::packed {
namespace {

constexpr int64_t kUnit = 4;  ///< bytes of one row that lie side by side

/// What a block of a GGUF tensor holds, and where.
struct BlockParts {
  int64_t minimum = -1, fifths = -1, codes = 2;  ///< offsets in bytes; -1: the type has none

  explicit BlockParts(BlockType type) {
    if (has_minimum(type)) minimum = std::exchange(codes, codes + 2);
    if (has_fifths(type)) fifths = std::exchange(codes, codes + kBlock / 8);
  }
};

/// The addresses of one row in its strip.
class StripRow {
 public:
  StripRow(const Matrix& w, int64_t row)
      : layout_(w.type, w.blocks()), strip_(w.data + row / kStripRows * layout_.bytes), lane_(row % kStripRows) {}

  /// Unit i of the row's codes, or of its pairs of values.
  std::byte* unit(int64_t i) const { return strip_ + (i * kStripRows + lane_) * kUnit; }
  std::byte* scale(int64_t block) const { return strip_ + layout_.scales + (block * kStripRows + lane_) * 2; }
  std::byte* minimum(int64_t block) const { return strip_ + layout_.minima + (block * kStripRows + lane_) * 2; }
  /// Four fifth bits, those of codes 4 i to 4 i + 3: half of a byte.
  int fifths(int64_t block, int64_t i) const {
    return (static_cast<int>(*fifths_byte(block, i)) >> fifths_shift()) & 15;
  }
  void set_fifths(int64_t block, int64_t i, int bits) const {
    std::byte* byte = fifths_byte(block, i);
    *byte = (*byte & ~(std::byte{15} << fifths_shift())) | (static_cast<std::byte>(bits) << fifths_shift());
  }

 private:
  std::byte* fifths_byte(int64_t block, int64_t i) const {
    return strip_ + layout_.fifths + (block * 8 + i) * 8 + lane_ / 2;
  }
  int fifths_shift() const { return static_cast<int>(lane_ % 2) * 4; }

  StripLayout layout_;
  std::byte* strip_;
  int64_t lane_;
};

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

}  // namespace

bool can_pack(BlockType type) {
  switch (type) {
    case BlockType::bf16:
    case BlockType::q4_0:
    case BlockType::q4_1:
    case BlockType::q5_0:
    case BlockType::q5_1:
    case BlockType::q8_0:
      return true;
    default:
      return false;
  }
}

int64_t packed_bytes(const Matrix& w) {
  return w.strips() * StripLayout(w.type, w.blocks()).bytes;
}

void pack_row(const Matrix& w, int64_t row, const std::byte* source) {
  PRISM_ASSERT(can_pack(w.type) && row >= 0 && row < w.rows, "pack_row", "wrong type or row");
  const StripRow to(w, row);
  if (w.type == BlockType::bf16) {
    for (int64_t i = 0; i < w.blocks() * kBlock / 2; ++i) {
      const int64_t count = std::clamp<int64_t>(w.inner * 2 - i * kUnit, 0, kUnit);
      std::memset(to.unit(i), 0, kUnit);
      if (count > 0) std::memcpy(to.unit(i), source + i * kUnit, static_cast<size_t>(count));
    }
    return;
  }
  const BlockLayout& block = block_layout(w.type);
  PRISM_ASSERT(w.inner % kBlock == 0, "pack_row", "{} columns are not whole blocks", w.inner);
  const BlockParts parts(w.type);
  const int64_t units = (block.bytes - parts.codes) / kUnit;
  for (int64_t b = 0; b < w.blocks(); ++b) {
    const std::byte* from = source + b * block.bytes;
    for (int64_t i = 0; i < units; ++i) std::memcpy(to.unit(b * units + i), from + parts.codes + i * kUnit, kUnit);
    std::memcpy(to.scale(b), from, 2);
    if (parts.minimum >= 0) std::memcpy(to.minimum(b), from + parts.minimum, 2);
    if (parts.fifths < 0) continue;
    const auto bits = load<uint32_t>(from + parts.fifths);
    for (int64_t i = 0; i < 8; ++i) to.set_fifths(b, i, static_cast<int>(bits >> (4 * i)) & 15);
  }
}

void unpack_row(const Matrix& w, int64_t row, float* out) {
  const StripRow from(w, row);
  if (w.type == BlockType::bf16) {
    for (int64_t k = 0; k < w.inner; ++k) out[k] = float_of_bf16(load<uint16_t>(from.unit(k / 2) + k % 2 * 2));
    return;
  }
  const BlockParts parts(w.type);
  const bool is_wide = w.type == BlockType::q8_0;
  for (int64_t b = 0; b < w.blocks(); ++b) {
    const float scale = float_of_f16(load<uint16_t>(from.scale(b)));
    const float minimum = parts.minimum < 0 ? 0.0f : float_of_f16(load<uint16_t>(from.minimum(b)));
    for (int64_t k = 0; k < kBlock; ++k) {
      const int64_t i = k / kUnit;
      const auto byte = static_cast<int>(from.unit(is_wide ? b * 8 + i : b * 4 + i % 4)[k % kUnit]);
      int code = is_wide ? static_cast<int8_t>(byte) : i < 4 ? byte & 15 : byte >> 4;
      if (parts.fifths >= 0) code |= ((from.fifths(b, i) >> (k % kUnit)) & 1) << 4;
      const float product = scale * static_cast<float>(code - zero_code(w.type));
      out[b * kBlock + k] = parts.minimum < 0 ? product : product + minimum;
    }
  }
}

}  // namespace prism::packed
