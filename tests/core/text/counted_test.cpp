#include "prism/core/text/counted.h"

#include <gtest/gtest.h>

namespace prism {
namespace {

TEST(Counted, IsSingularForOneAlone) {
  EXPECT_EQ(counted(1, "head"), "1 head");
  EXPECT_EQ(counted(0, "token"), "0 tokens");
  EXPECT_EQ(counted(12, "special token"), "12 special tokens");
}

}  // namespace
}  // namespace prism
