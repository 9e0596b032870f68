#include "prism/kernels/compute_type.h"

#include <gtest/gtest.h>

#include "prism/core/error.h"
#include "tests/core/message_of.h"

namespace prism {
namespace {

TEST(ComputeType, IsFoundByItsFullAndItsShortName) {
  for (const auto* name : {"bfloat16", "bf16"}) EXPECT_EQ(find_compute_type(name), torch::kBFloat16) << name;
  for (const auto* name : {"float32", "f32"}) EXPECT_EQ(find_compute_type(name), torch::kFloat) << name;
  EXPECT_EQ(compute_type_name(find_compute_type("bf16")), "bfloat16");
}

TEST(ComputeType, IsRefusedAsItWasTyped) {
  EXPECT_REFUSED(find_compute_type("f16"), "one of auto, bfloat16 and float32; found \"f16\"");
}

}  // namespace
}  // namespace prism
