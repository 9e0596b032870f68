// Conversion between float32 and ggml's block types (core/numbers/block_type.h), in plain C++: the truth for faster
// versions.
//
//   dequantise(BlockType::q4_k, tensor.data, floats);
//   quantise(BlockType::q8_0, floats, bytes);
//
// Both give the same bits as the Python package gguf (gguf/quants.py), except for the sign and payload of a NaN that
// arithmetic produces.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "prism/core/numbers/block_type.h"

namespace prism {

/// Unpacks blocks. With d, m: the block's scales as float32; s, t: the scales of a group of values; q: a value's code,
/// all of which are small integers:
///
///   F32, F16, BF16      x                      Q8_0                 d q,       q in -128..127
///   Q4_0, Q5_0          d (q - 8), d (q - 16)  Q4_1, Q5_1           d q + m
///   Q2_K, Q4_K, Q5_K    (d s) q - (m t)        Q3_K, Q6_K           (d s) (q - 4), (d s) (q - 32)
///   IQ4_NL              d v[q],    v a table of 16 integers
///
/// Each product and sum is rounded to float32.
///
/// @param bytes   whole blocks, at any address.
/// @param floats  block_layout(type).elements values for each block.
/// @throws InternalError if the sizes do not match.
void dequantise(BlockType type, std::span<const std::byte> bytes, std::span<float> floats);

/// Packs values as F32, F16, BF16 (to nearest, ties to even) or Q8_0. Q8_0, with a block's largest magnitude a:
///
///   d = a / 127     q = round(x / d), halves away from zero     stored: d as F16, q as int8
///
/// Where x / d is not finite, q is 0: in a block with a NaN or an infinity, and where 1 / d overflows float32.
///
/// @param floats  whole blocks.
/// @param bytes   block_layout(type).bytes for each block, at any address.
/// @throws InputError for the other types; InternalError if the sizes do not match.
void quantise(BlockType type, std::span<const float> floats, std::span<std::byte> bytes);

}  // namespace prism
