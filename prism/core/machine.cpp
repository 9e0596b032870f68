#include "prism/core/machine.h"

#include <malloc.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <utility>

namespace prism {
namespace {

/// The logical processors that this process may run on.
cpu_set_t affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) CPU_SET(0, &set);
  return set;
}

/// Cores that the nearest cgroup's quota pays for, rounded down; 0 when there is no quota.
int quota_cores() {
  double quota = 0, period = 0;
  std::string word;
  if (std::ifstream file("/sys/fs/cgroup/cpu.max"); file >> word >> period) {
    if (word != "max") quota = std::atof(word.c_str());
  } else if (std::ifstream v1("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"); v1 >> quota) {
    std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_period_us") >> period;
  }
  if (quota <= 0 || period <= 0) return 0;
  return std::max(1, static_cast<int>(std::floor(quota / period)));
}

/// Distinct (socket, core) pairs of the logical processors in `set`; one whose place the system does not say is a core.
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
  const cpu_set_t set = affinity();
  ThreadLimit limit{CPU_COUNT(&set), "affinity"};
  if (const int cores = physical_cores(set); cores < limit.threads) limit = {cores, "physical cores"};
  if (const int cores = quota_cores(); cores > 0 && cores < limit.threads) limit = {cores, "cgroup quota"};
  return limit;
}

void set_up_process() {
  ::setenv("MKL_CBWR", "AUTO,STRICT", 0);
  ::mallopt(M_MMAP_THRESHOLD, 1 << 30);
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
  ::mallopt(M_TOP_PAD, 64 << 20);
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

int64_t peak_memory_bytes() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace prism
