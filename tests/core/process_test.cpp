#include "prism/core/process.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/core/environment.h"

namespace prism {
namespace {

TEST(SetUpProcess, KeepsTheUsersChoiceOfBits) {
  const Environment bits("MKL_CBWR", "COMPATIBLE");
  set_up_process();
  EXPECT_STREQ(std::getenv("MKL_CBWR"), "COMPATIBLE");
  {
    const Environment none("MKL_CBWR", nullptr);
    set_up_process();
    EXPECT_STREQ(std::getenv("MKL_CBWR"), "AUTO,STRICT");
  }
}

}  // namespace
}  // namespace prism
