// Opening devices, and the messages for missing ones.
#include "prism/models/device.h"

#include <gtest/gtest.h>

#include "prism/core/error.h"
#include "prism/kernels/compute_type.h"
#include "tests/core/message_of.h"

namespace prism {
namespace {

TEST(Device, IsTheCpuUnlessAGpuIsNamed) {
  EXPECT_TRUE(open_device("cpu").is_cpu());
  for (const char* name : {"", "gpu", "CUDA", "cuda:", "cuda:x", "cuda:-1", "cuda:1x", "cuda:99999999999"})
    EXPECT_REFUSED(open_device(name), "expected cpu, cuda or cuda:N");
}

TEST(Device, ThatIsNotThereIsRefusedWithTheWayOut) {
  try {
    open_device("cuda:1000");
    FAIL() << "a thousand GPUs";
  } catch (const FailedError& error) {
    EXPECT_NE(std::string(error.what()).find("leave out --device"), std::string::npos) << error.what();
  }
}

TEST(Device, OfAGpuComputesInBfloat16) {
  EXPECT_EQ(find_compute_type("auto", torch::Device(torch::kCUDA, 0)), torch::kBFloat16);
  EXPECT_EQ(find_compute_type("float32", torch::Device(torch::kCUDA, 0)), torch::kFloat);
}

}  // namespace
}  // namespace prism
