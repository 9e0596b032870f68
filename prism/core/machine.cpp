#include "prism/core/machine.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "prism/core/error.h"

namespace prism {
namespace {

/// The logical processors that this process may run on.
cpu_set_t affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) CPU_SET(0, &set);
  return set;
}

namespace fs = std::filesystem;

/// The number of cores that the quota of a cgroup's folder allows, which may be a fraction; infinite without a quota.
double quota_of(const fs::path& group) {
  double quota = -1, period = 0;
  std::string word;
  if (std::ifstream file(group / "cpu.max"); file >> word >> period) {
    if (word != "max") quota = std::atof(word.c_str());
  } else if (std::ifstream v1(group / "cpu.cfs_quota_us"); v1 >> quota) {
    std::ifstream(group / "cpu.cfs_period_us") >> period;
  }
  return quota > 0 && period > 0 ? quota / period : std::numeric_limits<double>::infinity();
}

/// The number of cores that the quotas of this process's cgroups allow, rounded down; 0 if there is no quota.
int quota_cores() {
  double cores = std::numeric_limits<double>::infinity();
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    // "0::/user.slice/a.scope", or "4:cpu,cpuacct:/a" in version 1.
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty() && ("," + controllers + ",").find(",cpu,") == std::string::npos) continue;
    const fs::path root = controllers.empty() ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu";
    // Every parent group counts too, up to the mount's root. In a container that is the container's root.
    for (fs::path group = line.substr(second + 1);; group = group.parent_path()) {
      cores = std::min(cores, quota_of(root / group.relative_path()));
      if (group == group.parent_path()) break;
    }
  }
  return std::isinf(cores) ? 0 : std::max(1, static_cast<int>(std::floor(cores)));
}

/// Number of distinct (socket, core) pairs of the logical processors in `set`; one of unknown position counts as a
/// core.
int physical_cores(const cpu_set_t& set) {
  std::set<std::pair<int, int>> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &set)) continue;
    const std::string base = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    int core = cpu, package = -1;
    if (std::ifstream(base + "core_id") >> core) std::ifstream(base + "physical_package_id") >> package;
    cores.emplace(package, core);
  }
  return static_cast<int>(cores.size());
}

}  // namespace

ThreadLimit thread_limit(int requested) {
  if (requested > 0) return {requested, "--threads"};
  if (const char* text = std::getenv("OMP_NUM_THREADS"); text != nullptr && std::atoi(text) > 0)
    return {std::atoi(text), "OMP_NUM_THREADS"};
  return core_limit();
}

ThreadLimit core_limit() {
  const cpu_set_t set = affinity();
  ThreadLimit limit{CPU_COUNT(&set), "affinity"};
  if (const int cores = physical_cores(set); cores < limit.threads) limit = {cores, "physical cores"};
  if (const int cores = quota_cores(); cores > 0 && cores < limit.threads) limit = {cores, "cgroup quota"};
  return limit;
}

CoreWait::CoreWait() : last_(now()) {}

CoreWait::Times CoreWait::now() {
  constexpr double kSecond_ns = 1e9;
  Times sum;
  std::error_code ignored;
  for (const auto& thread : fs::directory_iterator("/proc/self/task", ignored)) {
    double running_ns = 0, waiting_ns = 0;
    if (!(std::ifstream(thread.path() / "schedstat") >> running_ns >> waiting_ns)) continue;
    sum.running_s += running_ns / kSecond_ns;
    sum.waiting_s += waiting_ns / kSecond_ns;
  }
  return sum;
}

std::optional<double> CoreWait::share() {
  const Times times = now(), before = std::exchange(last_, times);
  // The times of threads that have ended are no longer reported, so the sum can decrease.
  const double running = times.running_s - before.running_s,
               waiting = std::max(0.0, times.waiting_s - before.waiting_s);
  if (!(running > 0)) return std::nullopt;
  return waiting / (running + waiting);
}

std::string busy_text(double share) {
  return fmt::format("the cores are busy: threads waited {:.0f}% of the time for one", 100 * share);
}

void fail_to_start_threads(int threads, const std::system_error& error) {
  throw FailedError("threads", fmt::format("expected to start {} threads; found: {}; choose fewer by --threads.",
                                           threads, error.code().message()));
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const size_t start = line.find_first_not_of(" \t", line.find(':') + 1);
    if (start != std::string::npos) return line.substr(start);
  }
  return "unknown";
}

int64_t total_memory_bytes() {
  auto bytes = static_cast<int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGE_SIZE);
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    int64_t limit = 0;
    if (std::ifstream(path) >> limit && limit > 0) bytes = std::min(bytes, limit);
  }
  return bytes;
}

int64_t available_memory_bytes() {
  int64_t bytes = total_memory_bytes();
  std::ifstream file("/proc/meminfo");
  for (std::string name, line; file >> name && std::getline(file, line);)
    if (name == "MemAvailable:") bytes = std::min<int64_t>(bytes, std::stoll(line) * 1024);
  struct rlimit limit {};
  int64_t pages = 0;
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      std::ifstream("/proc/self/statm") >> pages)
    bytes = std::min(bytes, static_cast<int64_t>(limit.rlim_cur) - pages * ::sysconf(_SC_PAGE_SIZE));
  return std::max<int64_t>(0, bytes);
}

int64_t peak_memory_bytes() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace prism
