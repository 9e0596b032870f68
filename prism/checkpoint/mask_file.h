// Block masks in safetensors files: as compact lists, or as boolean tensors for exchange with other programs.
#pragma once

#include <filesystem>
#include <optional>

#include "prism/kernels/attention/block_mask.h"
#include "prism/sparse/block_sizes.h"

namespace prism {

/// Writes counts int32 [B, H, M], indices int32 [B, H, M, N] and block_sizes int64 [2] (queries, keys). Atomic.
void save_block_mask(const std::filesystem::path& path, const BlockMask& mask);

/// Reads a file of save_block_mask(), or one with `mask` [B, H, M, N], uint8 or bool, as prism attend writes it.
///
/// @param keys   number of keys that the mask's columns cover.
/// @param sizes  block sizes of a `mask`, 128 if left out; lists store their own.
/// @throws InputError for files that hold neither, invalid block sizes, block sizes that contradict the lists', and
///         blocks beyond the keys.
BlockMask load_block_mask(const std::filesystem::path& path, int64_t keys, const std::optional<BlockSizes>& sizes = {});

}  // namespace prism
