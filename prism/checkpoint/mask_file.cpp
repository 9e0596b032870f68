#include "prism/checkpoint/mask_file.h"

#include "prism/checkpoint/tensor_file.h"
#include "prism/core/error.h"

namespace prism {
namespace {

constexpr const char* kCounts = "counts";
constexpr const char* kIndices = "indices";
constexpr const char* kSizes = "block_sizes";
constexpr const char* kMask = "mask";

int64_t blocks_over(int64_t keys, int64_t block) {
  return (keys + block - 1) / block;
}

BlockMask read_lists(const SafetensorsReader& reader, int64_t keys) {
  const std::string file = reader.path().string();
  PRISM_CHECK(reader.contains(kCounts) && reader.contains(kIndices) && reader.contains(kSizes), "block_mask",
              "expected {}, or {}, {} and {}, in {}; found other tensors; name another file.", kMask, kCounts, kIndices,
              kSizes, file);
  const auto sizes = read_tensor(reader, kSizes);
  PRISM_CHECK(sizes.dim() == 1 && sizes.size(0) == 2 && sizes.scalar_type() == torch::kLong, "block_mask",
              "expected {} of two int64; found {} {} in {}; convert them.", kSizes, sizes.dtype().name(),
              c10::str(sizes.sizes()), file);
  const int64_t query_block = sizes[0].item<int64_t>(), key_block = sizes[1].item<int64_t>();
  for (const int64_t size : {query_block, key_block}) check(BlockSizes{.block_size = size});
  const auto counts = read_tensor(reader, kCounts), indices = read_tensor(reader, kIndices);
  PRISM_CHECK(counts.scalar_type() == torch::kInt && indices.scalar_type() == torch::kInt, "block_mask",
              "expected {} and {} of int32; found {} and {} in {}; convert them.", kCounts, kIndices,
              counts.dtype().name(), indices.dtype().name(), file);
  return checked_block_mask({query_block, key_block, counts, indices}, blocks_over(keys, key_block));
}

}  // namespace

void save_block_mask(const std::filesystem::path& path, const BlockMask& mask) {
  write_tensors(path, {{kCounts, mask.counts_BHM},
                       {kIndices, mask.indices_BHMN},
                       {kSizes, torch::tensor({mask.query_block_size, mask.key_block_size}, torch::kLong)}});
}

BlockMask load_block_mask(const std::filesystem::path& path, int64_t keys, const std::optional<BlockSizes>& sizes) {
  const SafetensorsReader reader(path);
  if (!reader.contains(kMask)) {
    auto lists = read_lists(reader, keys);
    PRISM_CHECK(!sizes || (sizes->queries() == lists.query_block_size && sizes->keys() == lists.key_block_size),
                "block_mask", "expected the block sizes stored in {}, {} and {}; found {} and {}; leave the sizes out.",
                path.string(), lists.query_block_size, lists.key_block_size, sizes->queries(), sizes->keys());
    return lists;
  }
  const BlockSizes blocks = sizes.value_or(BlockSizes{});
  check(blocks);
  const auto mask = read_tensor(reader, kMask);
  PRISM_CHECK(mask.scalar_type() == torch::kByte || mask.scalar_type() == torch::kBool, "block_mask",
              "expected {} of uint8 or bool; found {} in {}; convert it.", kMask, mask.dtype().name(), path.string());
  const int64_t columns = blocks_over(keys, blocks.keys());
  PRISM_CHECK(mask.dim() == 4 && mask.size(3) == columns, "block_mask",
              "expected {} [B, H, query blocks, {}] for {} keys in blocks of {}; found {} in {}; give its block sizes "
              "(--mask-blocks).",
              kMask, columns, keys, blocks.keys(), c10::str(mask.sizes()), path.string());
  return make_block_mask(mask, blocks.queries(), blocks.keys());
}

}  // namespace prism
