#include "prism/core/machine.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/core/child_process.h"
#include "tests/core/environment.h"

namespace prism {
namespace {

TEST(ThreadLimit, ByDefaultIsWhatTheMachineLends) {
  const Environment none("OMP_NUM_THREADS", nullptr);
  const ThreadLimit limit = thread_limit();
  cpu_set_t set;
  ASSERT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
  EXPECT_GE(limit.threads, 1);
  EXPECT_LE(limit.threads, CPU_COUNT(&set));
  EXPECT_TRUE(std::set<std::string>({"affinity", "cgroup quota", "physical cores"}).count(limit.reason))
      << limit.reason;
}

TEST(ThreadLimit, FollowsTheAffinityOfTheProcess) {
  ChildProcess child([](const auto&) {
    ::unsetenv("OMP_NUM_THREADS");
    cpu_set_t set;
    if (::sched_getaffinity(0, sizeof set, &set) != 0) ::_exit(1);
    int first = 0;
    while (!CPU_ISSET(first, &set)) ++first;
    CPU_ZERO(&set);
    CPU_SET(first, &set);
    if (::sched_setaffinity(0, sizeof set, &set) != 0) ::_exit(2);
    const ThreadLimit limit = thread_limit();
    ::_exit(limit.threads == 1 && limit.reason == "affinity" ? 0 : 3);
  });
  EXPECT_EQ(child.wait(), 0);
}

TEST(ThreadLimit, YieldsToTheEnvironmentAndThatToTheRequest) {
  const Environment set("OMP_NUM_THREADS", "3");
  EXPECT_EQ(thread_limit().threads, 3);
  EXPECT_EQ(thread_limit().reason, "OMP_NUM_THREADS");
  EXPECT_EQ(thread_limit(5).threads, 5);
  EXPECT_EQ(thread_limit(5).reason, "--threads");
}

TEST(ThreadLimit, PassesOverAnEnvironmentThatIsNoNumber) {
  const Environment none("OMP_NUM_THREADS", nullptr);
  const ThreadLimit expected = thread_limit();
  for (const char* text : {"", "0", "-2", "many"}) {
    const Environment set("OMP_NUM_THREADS", text);
    EXPECT_EQ(thread_limit().threads, expected.threads) << text;
    EXPECT_EQ(thread_limit().reason, expected.reason) << text;
  }
}

TEST(PeakMemory, GrowsWithWhatIsTouched) {
  const int64_t before = peak_memory_bytes();
  constexpr size_t kBytes = size_t{64} << 20;
  // Writes every page, so that all of it is resident.
  const std::vector<char> block(static_cast<size_t>(before) + kBytes, 1);
  EXPECT_GE(peak_memory_bytes(), before + static_cast<int64_t>(kBytes));
  EXPECT_EQ(block.back(), 1);
}

TEST(CoreWait, IsTheShareOfTimeInWhichThreadsThatShareACoreWaitForIt) {
  // Runs in a child process, since the affinity would persist.
  ChildProcess child([](const auto&) {
    cpu_set_t all, one;
    CPU_ZERO(&all);
    CPU_ZERO(&one);
    ::sched_getaffinity(0, sizeof all, &all);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu)
      if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
    ::sched_setaffinity(0, sizeof one, &one);
    std::atomic<bool> done = false;
    std::vector<std::thread> threads;
    CoreWait wait;
    for (int i = 0; i < 3; ++i)
      threads.emplace_back([&] {
        while (!done) {
        }
      });
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    const auto share = wait.share();
    done = true;
    for (auto& thread : threads) thread.join();
    if (!share) ::_exit(2);  // Linux does not report the times
    ::_exit(*share > 0.5 && *share < 1 && *share > CoreWait::kBusy ? 0 : 1);
  });
  const int status = child.wait();
  if (status == 2) GTEST_SKIP() << "this Linux keeps no times of threads";
  EXPECT_EQ(status, 0);
  EXPECT_EQ(busy_text(0.456), "the cores are busy: threads waited 46% of the time for one");
}

}  // namespace
}  // namespace prism
