#include "prism/kernels/memory/huge_pages.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace prism {
namespace {

TEST(HugePages, HoldWhatIsWrittenFromEndToEnd) {
  for (const int64_t count : {int64_t{0}, int64_t{1000}, (int64_t{1} << 20) - 1, int64_t{1} << 20, int64_t{3000001}}) {
    const auto values = empty_in_huge_pages(count, torch::kBFloat16);
    ASSERT_EQ(values.numel(), count);
    EXPECT_EQ(values.scalar_type(), torch::kBFloat16);
    values.fill_(1);
    EXPECT_EQ(values.eq(1).sum().item<int64_t>(), count);
  }
}

TEST(HugePages, StartAtTheBoundaryOfOne) {
  const auto values = empty_in_huge_pages(int64_t{1} << 22, torch::kFloat);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(values.data_ptr()) % (2 << 20), 0u);
}

TEST(HugePages, OutliveTheTensorThatOwnsThemInItsViews) {
  const auto part = empty_in_huge_pages(int64_t{1} << 21, torch::kFloat).narrow(0, 100, 50);
  part.fill_(3);
  EXPECT_EQ(part.sum().item<float>(), 150);
}

}  // namespace
}  // namespace prism
