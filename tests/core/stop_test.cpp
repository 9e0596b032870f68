#include "prism/core/stop.h"

#include <gtest/gtest.h>

#include <csignal>

#include "tests/core/child_process.h"

namespace prism {
namespace {

// Each test runs in a child process, because signals and the flag belong to the whole process.

TEST(Stop, RemembersTheSignalAndGoesOn) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    ChildProcess child([signal](const auto&) {
      catch_stop_signals();
      if (stop_signal() != 0) ::_exit(1);
      std::raise(signal);
      ::_exit(stop_signal() == signal ? 0 : 2);
    });
    EXPECT_EQ(child.wait(), 0) << signal;
  }
}

TEST(Stop, TakesTwoSignalsAtOnceForOne) {
  for (const int first : {SIGTERM, SIGINT}) {
    ChildProcess child([first](const auto&) {
      catch_stop_signals();
      std::raise(first);
      std::raise(SIGINT);
      ::_exit(stop_signal() == SIGINT ? 0 : 1);
    });
    EXPECT_EQ(child.wait(), 0) << first;
  }
}

TEST(Stop, LeavesAHangUpIgnored) {
  ChildProcess child([](const auto&) {
    std::signal(SIGHUP, SIG_IGN);
    catch_stop_signals();
    std::raise(SIGHUP);
    ::_exit(stop_signal() == 0 ? 0 : 1);
  });
  EXPECT_EQ(child.wait(), 0);
}

TEST(Stop, EndsTheProcessAtALaterInterrupt) {
  for (const int first : {SIGTERM, SIGINT}) {
    ChildProcess child([first](const auto&) {
      catch_stop_signals();
      std::raise(first);
      ::usleep(3100000);
      std::raise(SIGINT);
    });
    EXPECT_EQ(child.wait(), -SIGINT) << first;
  }
}

TEST(Stop, LetsASecondTerminationWait) {
  ChildProcess child([](const auto&) {
    catch_stop_signals();
    std::raise(SIGTERM);
    std::raise(SIGTERM);
    ::_exit(stop_signal() == SIGTERM ? 0 : 1);
  });
  EXPECT_EQ(child.wait(), 0);
}

TEST(Stop, ReleasesSignalsAndCatchesThemAgain) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    ChildProcess child([signal](const auto&) {
      for (int round = 0; round < 2; ++round) {
        catch_stop_signals();
        std::raise(signal);
        if (stop_signal() != signal) ::_exit(1);
        release_stop_signals();
        if (stop_signal() != 0) ::_exit(2);
      }
      std::raise(signal);
    });
    EXPECT_EQ(child.wait(), -signal) << signal;
  }
}

TEST(Stop, ReleasesOnlyWhatItCaught) {
  ChildProcess child([](const auto&) {
    std::signal(SIGHUP, SIG_IGN);
    catch_stop_signals();
    release_stop_signals();
    std::raise(SIGHUP);
    ::_exit(0);
  });
  EXPECT_EQ(child.wait(), 0);
}

TEST(Stop, DoesNotBreakAReadThatWaits) {
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  ChildProcess child([&](const auto& ready) {
    catch_stop_signals();
    ready();
    char byte = 0;
    // EINTR would surprise every library that reads a file.
    ::_exit(::read(pipe[0], &byte, 1) == 1 && byte == 'x' && stop_signal() == SIGTERM ? 0 : 1);
  });
  ASSERT_TRUE(child.wait_until_ready());
  ::kill(child.id(), SIGTERM);
  ::usleep(50000);
  ASSERT_EQ(::write(pipe[1], "x", 1), 1);
  EXPECT_EQ(child.wait(), 0);
  ::close(pipe[0]);
  ::close(pipe[1]);
}

}  // namespace
}  // namespace prism
