#include "prism/checkpoint/mask_file.h"

#include "prism/checkpoint/tensor_file.h"
#include "prism/core/error.h"

namespace prism {
namespace {

constexpr const char* kCounts = "counts";
constexpr const char* kIndices = "indices";
constexpr const char* kSizes = "block_sizes";
constexpr const char* kMask = "mask";

}  // namespace

void save_block_mask(const std::filesystem::path& path, const BlockMask& mask) {
  write_tensors(path, {{kCounts, mask.counts_BHM},
                       {kIndices, mask.indices_BHMN},
                       {kSizes, torch::tensor({mask.query_block_size, mask.key_block_size}, torch::kLong)}});
}

BlockMask load_block_mask(const std::filesystem::path& path, int64_t query_block, int64_t key_block) {
  const SafetensorsReader reader(path);
  if (reader.contains(kMask)) {
    const auto mask = read_tensor(reader, kMask);
    PRISM_CHECK(mask.scalar_type() == torch::kByte || mask.scalar_type() == torch::kBool, "block_mask",
                "expected {} of uint8 or bool; found {} in {}; convert it.", kMask, mask.dtype().name(), path.string());
    return make_block_mask(mask, query_block, key_block);
  }
  PRISM_CHECK(reader.contains(kCounts) && reader.contains(kIndices) && reader.contains(kSizes), "block_mask",
              "expected {}, or {}, {} and {}, in {}; found other tensors; name another file.", kMask, kCounts, kIndices,
              kSizes, path.string());
  const auto sizes = read_tensor(reader, kSizes).to(torch::kLong).contiguous();
  PRISM_CHECK(sizes.numel() == 2, "block_mask", "expected 2 {}; found {} in {}.", kSizes, sizes.numel(), path.string());
  const auto counts = read_tensor(reader, kCounts), indices = read_tensor(reader, kIndices);
  PRISM_CHECK(counts.scalar_type() == torch::kInt && indices.scalar_type() == torch::kInt, "block_mask",
              "expected {} and {} of int32; found {} and {} in {}; convert them.", kCounts, kIndices,
              counts.dtype().name(), indices.dtype().name(), path.string());
  return {sizes[0].item<int64_t>(), sizes[1].item<int64_t>(), counts, indices, {}};
}

}  // namespace prism
