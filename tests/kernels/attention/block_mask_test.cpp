// Lists of kept blocks against boolean masks.
#include "prism/kernels/attention/block_mask.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "prism/core/error.h"

namespace prism {
namespace {

using torch::Tensor;

Tensor random_blocks(double share) {
  return torch::rand({2, 3, 5, 7}) < share;
}

TEST(BlockMask, IsMadeFromBooleansAndGivesThemBack) {
  torch::manual_seed(1);
  for (const double share : {0.0, 0.4, 1.0}) {
    const Tensor kept = random_blocks(share);
    const BlockMask mask = make_block_mask(kept, 64, 128);
    EXPECT_TRUE(at::equal(kept_blocks(mask, 7), kept));
    EXPECT_EQ(mask.query_block_size, 64);
    EXPECT_EQ(mask.key_block_size, 128);
    const Tensor listed = torch::arange(mask.indices_BHMN.size(3)) < mask.counts_BHM.unsqueeze(-1);
    const Tensor rises = mask.indices_BHMN.diff() > 0;
    EXPECT_TRUE(rises.logical_or(listed.slice(-1, 1).logical_not()).all().item<bool>()) << "not ascending";
  }
}

TEST(BlockMask, IsMadeFromListsOfEachRow) {
  const BlockMask mask = make_block_mask({{0, 2}, {}, {1}, {0, 1, 2}}, 1, 2, 32, 32);
  const Tensor kept = torch::tensor({1, 0, 1, 0, 0, 0, 0, 1, 0, 1, 1, 1}).view({1, 2, 2, 3}).to(torch::kBool);
  EXPECT_TRUE(at::equal(kept_blocks(mask, 3), kept));
}

TEST(BlockMaskInput, ThatIsWrongGetsASentence) {
  const BlockMask mask = make_block_mask(random_blocks(0.5), 32, 32);
  EXPECT_THROW(make_block_mask(torch::ones({2, 3}), 32, 32), InputError);
  EXPECT_THROW(make_block_mask(torch::ones({1, 1, 1, 1}), 0, 32), InputError);
  EXPECT_THROW(kept_blocks(mask, 3), InputError) << "a block after the last key";
}

}  // namespace
}  // namespace prism
