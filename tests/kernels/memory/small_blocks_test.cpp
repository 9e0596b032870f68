#include "prism/kernels/memory/small_blocks.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <cstdint>
#include <thread>
#include <vector>

namespace prism {
namespace {

class SmallBlocks : public testing::Test {
 protected:
  static void SetUpTestSuite() { reuse_small_blocks(); }
};

TEST_F(SmallBlocks, AreUsedAgainForSizesOfTheSamePowerOfTwo) {
  auto first = at::empty({700}, torch::kFloat);
  const void* data = first.data_ptr();
  first.reset();
  EXPECT_NE(at::empty({300}, torch::kFloat).data_ptr(), data);
  EXPECT_NE(at::empty({1025}, torch::kFloat).data_ptr(), data);
  const auto second = at::empty({1024}, torch::kFloat), third = at::empty({1024}, torch::kFloat);
  EXPECT_EQ(second.data_ptr(), data);
  EXPECT_NE(third.data_ptr(), data);
}

TEST_F(SmallBlocks, HoldWhatIsWrittenFromEndToEnd) {
  std::vector<torch::Tensor> tensors;
  for (int round = 0; round < 3; ++round) {
    tensors.clear();
    for (int64_t bytes = 0; bytes < (1 << 20); bytes = bytes * 3 / 2 + 1) {
      tensors.push_back(at::empty({bytes}, torch::kByte));
      tensors.back().fill_(round + 1);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensors.back().data_ptr()) % 64, 0u);
    }
    for (const auto& tensor : tensors) EXPECT_EQ(tensor.eq(round + 1).sum().item<int64_t>(), tensor.numel());
  }
}

TEST_F(SmallBlocks, MayBeReleasedByAnotherThreadAndAfterTheirOwnHasEnded) {
  auto made = at::empty({100}, torch::kFloat);
  torch::Tensor other;
  std::thread thread([&] {
    other = at::full({100}, 2.0f);
    made.reset();
    for (int i = 0; i < 100; ++i) at::empty({100}, torch::kFloat);
  });
  thread.join();
  EXPECT_EQ(other.sum().item<float>(), 200);
  other.reset();
}

TEST_F(SmallBlocks, MoreThanAreKeptGoBackToTheSystem) {
  std::vector<torch::Tensor> tensors;
  for (int i = 0; i < 100; ++i) tensors.push_back(at::full({1 << 15}, i, torch::kFloat));  // 12 MiB
  tensors.clear();
  for (int i = 0; i < 100; ++i) tensors.push_back(at::full({1 << 15}, i, torch::kFloat));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(tensors[static_cast<size_t>(i)][77].item<float>(), static_cast<float>(i));
}

}  // namespace
}  // namespace prism
