#include "prism/report/draw/gnuplot.h"

#include <gtest/gtest.h>

#include "prism/core/error.h"
#include "tests/report/has.h"
#include "tests/report/run_folder.h"

namespace prism {
namespace {

TEST(RunGnuplot, IsASentenceWithoutGnuplot) {
  try {
    run_gnuplot("/nowhere/gnuplot", "plot x\n");
    FAIL() << "a program that is not there has drawn";
  } catch (const FailedError& error) {
    const std::string message = error.what();
    EXPECT_TRUE(has(message, "\"/nowhere/gnuplot\" does not start (No such file or directory)")) << message;
    EXPECT_TRUE(has(message, "install it"));
  }
}

TEST(RunGnuplot, IsASentenceWhenGnuplotFails) {
  const RunFolder folder;
  const auto program = folder.path("gnuplot");
  write_file(program, "#!/bin/sh\necho 'unknown terminal' >&2\nexit 3\n");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  try {
    run_gnuplot(program.string(), "plot x\n");
    FAIL() << "a failure was taken for a plot";
  } catch (const FailedError& error) {
    EXPECT_TRUE(has(error.what(), "exit status 3 and the message \"unknown terminal")) << error.what();
  }
}

}  // namespace
}  // namespace prism
