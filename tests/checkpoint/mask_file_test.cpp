// Block masks in files, as lists and as booleans.
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
  const auto read = load_block_mask(folder.path() / "lists.safetensors", 1, 1);
  EXPECT_EQ(read.query_block_size, 32);
  EXPECT_EQ(read.key_block_size, 128);
  EXPECT_TRUE(at::equal(kept_blocks(read, 5), kept));

  write_tensors(folder.path() / "mask.safetensors", {{"mask", kept.to(torch::kByte)}});
  const auto booleans = load_block_mask(folder.path() / "mask.safetensors", 64, 32);
  EXPECT_EQ(booleans.key_block_size, 32);
  EXPECT_TRUE(at::equal(kept_blocks(booleans, 5), kept));
}

TEST(MaskFile, RefusesWhatIsNone) {
  const TemporaryFolder folder;
  const auto refuses = [&](const std::vector<NamedTensor>& tensors) {
    write_tensors(folder.path() / "wrong.safetensors", tensors);
    EXPECT_THROW(load_block_mask(folder.path() / "wrong.safetensors", 32, 32), InputError) << tensors[0].name;
  };
  const auto counts = torch::ones({1, 1, 1}, torch::kInt), indices = torch::zeros({1, 1, 1, 1}, torch::kInt);
  refuses({{"mask", torch::ones({1, 1, 1, 1})}});
  refuses({{"mask", torch::ones({1, 1}, torch::kByte)}});
  refuses({{"counts", counts}, {"indices", indices}});
  refuses({{"counts", counts}, {"indices", indices}, {"block_sizes", torch::ones({3}, torch::kLong)}});
  refuses(
      {{"counts", counts.to(torch::kFloat)}, {"indices", indices}, {"block_sizes", torch::ones({2}, torch::kLong)}});
  EXPECT_THROW(load_block_mask(folder.path() / "absent.safetensors", 32, 32), InputError);
}

}  // namespace
}  // namespace prism
