// Block mask files, as lists and as booleans.
#include "prism/checkpoint/mask_file.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "prism/checkpoint/tensor_file.h"
#include "prism/core/error.h"
#include "tests/core/temporary_folder.h"

namespace prism {
namespace {

TEST(MaskFile, KeepsListsAndReadsBooleans) {
  const TemporaryFolder folder;
  torch::manual_seed(1);
  const auto kept = torch::rand({2, 3, 4, 5}) < 0.4;
  const auto mask = make_block_mask(kept, 32, 128);
  save_block_mask(folder.path() / "lists.safetensors", mask);
  const auto read = load_block_mask(folder.path() / "lists.safetensors", 600);
  EXPECT_EQ(read.query_block_size, 32);
  EXPECT_EQ(read.key_block_size, 128);
  EXPECT_TRUE(at::equal(kept_blocks(read, 5), kept));
  EXPECT_THROW(load_block_mask(folder.path() / "lists.safetensors", 600, BlockSizes{.block_size = 32}), InputError);

  write_tensors(folder.path() / "mask.safetensors", {{"mask", kept.to(torch::kByte)}});
  const auto booleans =
      load_block_mask(folder.path() / "mask.safetensors", 160, BlockSizes{.query_block = 64, .key_block = 32});
  EXPECT_EQ(booleans.key_block_size, 32);
  EXPECT_TRUE(at::equal(kept_blocks(booleans, 5), kept));
}

constexpr BlockSizes kSizes = {.block_size = 32};

TEST(MaskFile, RefusesWhatIsNone) {
  const TemporaryFolder folder;
  const auto refuses = [&](const std::vector<NamedTensor>& tensors) {
    write_tensors(folder.path() / "wrong.safetensors", tensors);
    EXPECT_THROW(load_block_mask(folder.path() / "wrong.safetensors", 32, kSizes), InputError) << tensors[0].name;
  };
  const auto counts = torch::ones({1, 1, 1}, torch::kInt), indices = torch::zeros({1, 1, 1, 1}, torch::kInt);
  const auto sizes = torch::tensor({32, 32}, torch::kLong);
  refuses({{"mask", torch::ones({1, 1, 1, 1})}});
  refuses({{"mask", torch::ones({1, 1, 1, 2}, torch::kByte)}});
  refuses({{"mask", torch::ones({1, 1}, torch::kByte)}});
  refuses({{"counts", counts}, {"indices", indices}});
  for (const auto& wrong :
       {torch::full({3}, 32, torch::kLong), torch::full({2, 1}, 32, torch::kLong), torch::full({2}, 32.0),
        torch::full({2}, 0, torch::kLong), torch::full({2}, 48, torch::kLong)})
    refuses({{"counts", counts}, {"indices", indices}, {"block_sizes", wrong}});
  refuses({{"counts", counts.to(torch::kFloat)}, {"indices", indices}, {"block_sizes", sizes}});
  refuses({{"counts", counts + 1}, {"indices", indices}, {"block_sizes", sizes}});
  refuses({{"counts", counts}, {"indices", indices + 1}, {"block_sizes", sizes}});  // the second block of 32 keys
  EXPECT_THROW(load_block_mask(folder.path() / "absent.safetensors", 32, kSizes), InputError);
}

}  // namespace
}  // namespace prism
