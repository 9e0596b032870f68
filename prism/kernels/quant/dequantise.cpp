// Formats of blocks: ggml's ggml-common.h. Order of operations: gguf/quants.py.
#include <cstdint>
#include <cstring>

#include "prism/core/error.h"
#include "prism/kernels/quant/float16.h"
#include "prism/kernels/quant/quant.h"

namespace prism {
namespace {

constexpr int kSmallBlock = 32, kSuperBlock = 256;

uint16_t load_16(const uint8_t* bytes) {
  return static_cast<uint16_t>(bytes[0] | bytes[1] << 8);
}

float load_f16(const uint8_t* bytes) {
  return float_of_f16(load_16(bytes));
}

/// Code i of 32 codes of 4 bits: the low halves of 16 bytes, then their high halves.
int nibble(const uint8_t* codes, int i) {
  return i < 16 ? codes[i] & 15 : codes[i - 16] >> 4;
}

/// Bit i of a bit string.
int bit(const uint8_t* bits, int i) {
  return (bits[i / 8] >> (i % 8)) & 1;
}

void unpack_f32(const uint8_t* values, size_t count, float* out) {
  if (count > 0) std::memcpy(out, values, count * sizeof *out);
}

void unpack_f16(const uint8_t* values, size_t count, float* out) {
  for (size_t i = 0; i < count; ++i) out[i] = load_f16(values + 2 * i);
}

void unpack_bf16(const uint8_t* values, size_t count, float* out) {
  for (size_t i = 0; i < count; ++i) out[i] = float_of_bf16(load_16(values + 2 * i));
}

// d, 16 bytes of codes.
void unpack_q4_0(const uint8_t* block, float* out) {
  const float d = load_f16(block);
  for (int i = 0; i < kSmallBlock; ++i) out[i] = d * static_cast<float>(nibble(block + 2, i) - 8);
}

// d, m, 16 bytes of codes.
void unpack_q4_1(const uint8_t* block, float* out) {
  const float d = load_f16(block), m = load_f16(block + 2);
  for (int i = 0; i < kSmallBlock; ++i) out[i] = d * static_cast<float>(nibble(block + 4, i)) + m;
}

// d, fifth bits of the codes, 16 bytes with their other bits.
void unpack_q5_0(const uint8_t* block, float* out) {
  const float d = load_f16(block);
  for (int i = 0; i < kSmallBlock; ++i)
    out[i] = d * static_cast<float>((nibble(block + 6, i) | bit(block + 2, i) << 4) - 16);
}

// d, m, fifth bits of the codes, 16 bytes with their other bits.
void unpack_q5_1(const uint8_t* block, float* out) {
  const float d = load_f16(block), m = load_f16(block + 2);
  for (int i = 0; i < kSmallBlock; ++i)
    out[i] = d * static_cast<float>(nibble(block + 8, i) | bit(block + 4, i) << 4) + m;
}

// d, 32 codes.
void unpack_q8_0(const uint8_t* block, float* out) {
  const float d = load_f16(block);
  for (int i = 0; i < kSmallBlock; ++i) out[i] = static_cast<float>(static_cast<int8_t>(block[2 + i])) * d;
}

// d, 16 bytes of codes, each the index of a value.
void unpack_iq4_nl(const uint8_t* block, float* out) {
  static constexpr int8_t kValues[] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
  const float d = load_f16(block);
  for (int i = 0; i < kSmallBlock; ++i) out[i] = d * static_cast<float>(kValues[nibble(block + 2, i)]);
}

/// Code i of 256 codes of 2 bits: of each 32 bytes, first the lowest two bits of all, then the next two, and so on.
int pair_of_bits(const uint8_t* codes, int i) {
  return (codes[i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2)) & 3;
}

/// Code i of 256 codes of 4 bits: of each 32 bytes, first the low halves of all, then the high halves.
int half_byte(const uint8_t* codes, int i) {
  return (codes[i / 64 * 32 + i % 32] >> (i / 32 % 2 * 4)) & 15;
}

/// Bit i of 256: of 32 bytes, first the lowest bit of all, then the next, and so on.
int plane_bit(const uint8_t* bits, int i) {
  return (bits[i % 32] >> (i / 32)) & 1;
}

// For each 16 values a byte with s (low half) and t, 64 bytes of codes, d, m.
void unpack_q2_k(const uint8_t* block, float* out) {
  const uint8_t* const codes = block + 16;
  const float d = load_f16(block + 80), m = load_f16(block + 82);
  for (int i = 0; i < kSuperBlock; ++i) {
    const uint8_t scale = block[i / 16];
    const float ds = d * static_cast<float>(scale & 15), mt = m * static_cast<float>(scale >> 4);
    out[i] = ds * static_cast<float>(pair_of_bits(codes, i)) - mt;
  }
}

// Inverted third bits of the codes, 64 bytes with their other bits, 16 scales s of 6 bits in 12 bytes (first the low
// four bits of all in 8 bytes, then the high two), d.
void unpack_q3_k(const uint8_t* block, float* out) {
  const uint8_t* const codes = block + 32;
  const uint8_t* const scales = block + 96;
  const float d = load_f16(block + 108);
  for (int i = 0; i < kSuperBlock; ++i) {
    const int group = i / 16;
    const int low = (scales[group % 8] >> (group / 8 * 4)) & 15, high = (scales[8 + group % 4] >> (group / 4 * 2)) & 3;
    const float ds = d * static_cast<float>((low | high << 4) - 32);
    out[i] = ds * static_cast<float>(pair_of_bits(codes, i) - (plane_bit(block, i) != 0 ? 0 : 4));
  }
}

struct GroupScales {
  int s = 0, t = 0;
};

/// The 6-bit scales of group 0..7 in 12 bytes. Bytes 0..3 hold s of groups 0..3 and bytes 4..7 hold t; their two upper
/// bits are the upper bits of s and t of groups 4..7, whose lower four bits are the halves of bytes 8..11.
GroupScales group_scales(const uint8_t* scales, int group) {
  if (group < 4) return {scales[group] & 63, scales[4 + group] & 63};
  const int lower = scales[4 + group];
  return {(lower & 15) | (scales[group - 4] >> 6) << 4, lower >> 4 | (scales[group] >> 6) << 4};
}

/// Q4_K and Q5_K, which differ in the codes.
void unpack_groups(const uint8_t* block, float* out, auto code) {
  const float d = load_f16(block), m = load_f16(block + 2);
  for (int group = 0; group < 8; ++group) {
    const GroupScales scales = group_scales(block + 4, group);
    const float ds = d * static_cast<float>(scales.s), mt = m * static_cast<float>(scales.t);
    for (int i = group * 32; i < group * 32 + 32; ++i) out[i] = ds * static_cast<float>(code(i)) - mt;
  }
}

// d, m, 12 bytes of scales, 128 bytes of codes.
void unpack_q4_k(const uint8_t* block, float* out) {
  unpack_groups(block, out, [codes = block + 16](int i) { return half_byte(codes, i); });
}

// d, m, 12 bytes of scales, fifth bits of the codes, 128 bytes with their other bits.
void unpack_q5_k(const uint8_t* block, float* out) {
  unpack_groups(block, out, [block](int i) { return half_byte(block + 48, i) | plane_bit(block + 16, i) << 4; });
}

// 128 bytes with the lower four bits of the codes (64 bytes for 128 values), 64 bytes with the upper two, a signed
// scale s for each 16 values, d.
void unpack_q6_k(const uint8_t* block, float* out) {
  const float d = load_f16(block + 208);
  for (int i = 0; i < kSuperBlock; ++i) {
    const float ds = d * static_cast<float>(static_cast<int8_t>(block[192 + i / 16]));
    const int low = (block[i / 128 * 64 + i % 64] >> (i / 64 % 2 * 4)) & 15;
    out[i] = ds * static_cast<float>((low | pair_of_bits(block + 128, i) << 4) - 32);
  }
}

template <BlockType type, void (*unpack)(const uint8_t*, float*)>
void unpack_blocks(const uint8_t* block, size_t count, float* out) {
  const BlockLayout& layout = block_layout(type);
  for (size_t i = 0; i < count; ++i, block += layout.bytes, out += layout.elements) unpack(block, out);
}

struct UnpackRow {
  BlockType type;
  void (*unpack)(const uint8_t* blocks, size_t count, float* out);
};

constexpr UnpackRow kUnpacks[] = {
    {BlockType::f32, unpack_f32},
    {BlockType::f16, unpack_f16},
    {BlockType::bf16, unpack_bf16},
    {BlockType::q4_0, unpack_blocks<BlockType::q4_0, unpack_q4_0>},
    {BlockType::q4_1, unpack_blocks<BlockType::q4_1, unpack_q4_1>},
    {BlockType::q5_0, unpack_blocks<BlockType::q5_0, unpack_q5_0>},
    {BlockType::q5_1, unpack_blocks<BlockType::q5_1, unpack_q5_1>},
    {BlockType::q8_0, unpack_blocks<BlockType::q8_0, unpack_q8_0>},
    {BlockType::q2_k, unpack_blocks<BlockType::q2_k, unpack_q2_k>},
    {BlockType::q3_k, unpack_blocks<BlockType::q3_k, unpack_q3_k>},
    {BlockType::q4_k, unpack_blocks<BlockType::q4_k, unpack_q4_k>},
    {BlockType::q5_k, unpack_blocks<BlockType::q5_k, unpack_q5_k>},
    {BlockType::q6_k, unpack_blocks<BlockType::q6_k, unpack_q6_k>},
    {BlockType::iq4_nl, unpack_blocks<BlockType::iq4_nl, unpack_iq4_nl>},
};

const UnpackRow& find_unpack(BlockType type) {
  for (const UnpackRow& row : kUnpacks)
    if (row.type == type) return row;
  throw InternalError("dequantise", fmt::format("no unpacking for type {}", static_cast<uint32_t>(type)));
}

}  // namespace

void dequantise(BlockType type, std::span<const std::byte> bytes, std::span<float> floats) {
  const BlockLayout& layout = block_layout(type);
  const auto block_bytes = static_cast<size_t>(layout.bytes), elements = static_cast<size_t>(layout.elements);
  const size_t blocks = bytes.size() / block_bytes;
  PRISM_ASSERT(bytes.size() % block_bytes == 0 && floats.size() % elements == 0 && floats.size() / elements == blocks,
               "dequantise", "expected whole {} blocks; found {} bytes for {} values", layout.name, bytes.size(),
               floats.size());
  find_unpack(type).unpack(reinterpret_cast<const uint8_t*>(bytes.data()), blocks, floats.data());
}

}  // namespace prism
