// Block masks in safetensors files: as lists, small, or as booleans, what other programs have.
#pragma once

#include <filesystem>
#include <optional>

#include "prism/kernels/block_mask.h"
#include "prism/sparse/block_sizes.h"

namespace prism {

/// counts int32 [B, H, M], indices int32 [B, H, M, N] and block_sizes int64 [2], of queries and keys. Atomic.
void save_block_mask(const std::filesystem::path& path, const BlockMask& mask);

/// What save_block_mask() wrote, or `mask` [B, H, M, N], uint8 or bool, as prism attend writes it.
///
/// @param keys   tokens that the mask's columns are blocks of.
/// @param sizes  of a `mask`'s blocks, 128 if left out; lists have their own.
/// @throws InputError for files that hold neither, block sizes that no block has or that contradict the lists', and
///         blocks beyond the keys.
BlockMask load_block_mask(const std::filesystem::path& path, int64_t keys, const std::optional<BlockSizes>& sizes = {});

}  // namespace prism
