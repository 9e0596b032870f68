#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "prism/core/error.h"
#include "prism/core/text/names.h"
#include "prism/kernels/quant/float16.h"
#include "prism/kernels/quant/quant.h"

namespace prism {
namespace {

void pack_f32(const float* in, size_t count, std::byte* out) {
  if (count > 0) std::memcpy(out, in, count * sizeof *in);
}

void store_16(uint16_t bits, std::byte* to) {
  std::memcpy(to, &bits, sizeof bits);
}

void pack_f16(const float* in, size_t count, std::byte* out) {
  for (size_t i = 0; i < count; ++i) store_16(f16_of_float(in[i]), out + 2 * i);
}

void pack_bf16(const float* in, size_t count, std::byte* out) {
  for (size_t i = 0; i < count; ++i) store_16(bf16_of_float(in[i]), out + 2 * i);
}

void pack_block_q8_0(const float* in, std::byte* block) {
  float most = 0;
  for (int i = 0; i < 32; ++i) {
    const float magnitude = std::fabs(in[i]);
    if (!(magnitude <= most)) most = magnitude;  // also true for a NaN
    if (std::isnan(most)) break;
  }
  const float d = most / 127, inverse = d == 0 ? 0.0f : 1 / d;
  store_16(f16_of_float(d), block);
  for (int i = 0; i < 32; ++i) {
    const float scaled = in[i] * inverse;
    block[2 + i] = static_cast<std::byte>(std::isfinite(scaled) ? static_cast<int8_t>(std::round(scaled)) : 0);
  }
}

void pack_q8_0(const float* in, size_t count, std::byte* out) {
  const BlockLayout& layout = block_layout(BlockType::q8_0);
  for (size_t i = 0; i < count; ++i, in += layout.elements, out += layout.bytes) pack_block_q8_0(in, out);
}

struct PackRow {
  BlockType type;
  void (*pack)(const float* in, size_t blocks, std::byte* out);
};

constexpr PackRow kPacks[] = {
    {BlockType::f32, pack_f32}, {BlockType::f16, pack_f16}, {BlockType::bf16, pack_bf16}, {BlockType::q8_0, pack_q8_0}};

const PackRow& find_pack(BlockType type) {
  std::vector<std::string> names;
  for (const PackRow& row : kPacks) {
    if (row.type == type) return row;
    names.emplace_back(block_layout(row.type).name);
  }
  throw InputError("quantise", fmt::format("expected a type that prism writes: {}; found {}; choose one of them.",
                                           join_names(names), block_layout(type).name));
}

}  // namespace

void quantise(BlockType type, std::span<const float> floats, std::span<std::byte> bytes) {
  const PackRow& row = find_pack(type);
  const BlockLayout& layout = block_layout(type);
  const auto block_bytes = static_cast<size_t>(layout.bytes), elements = static_cast<size_t>(layout.elements);
  const size_t blocks = floats.size() / elements;
  PRISM_ASSERT(floats.size() % elements == 0 && bytes.size() % block_bytes == 0 && bytes.size() / block_bytes == blocks,
               "quantise", "expected whole {} blocks; found {} values for {} bytes", layout.name, floats.size(),
               bytes.size());
  row.pack(floats.data(), blocks, bytes.data());
}

}  // namespace prism
