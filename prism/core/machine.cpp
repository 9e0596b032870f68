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

int affinity_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
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

/// Distinct (socket, core) pairs; 0 when the system does not say.
int physical_cores() {
  std::set<std::pair<int, int>> cores;
  for (int cpu = 0;; ++cpu) {
    const std::string base = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    int core = 0, package = 0;
    if (!(std::ifstream(base + "core_id") >> core)) break;
    std::ifstream(base + "physical_package_id") >> package;
    cores.emplace(package, core);
  }
  return static_cast<int>(cores.size());
}

}  // namespace

ThreadLimit thread_limit(int requested) {
  if (requested > 0) return {requested, "--threads"};
  if (const char* text = std::getenv("OMP_NUM_THREADS"); text != nullptr && std::atoi(text) > 0)
    return {std::atoi(text), "OMP_NUM_THREADS"};
  ThreadLimit limit{affinity_cores(), "affinity"};
  if (const int cores = physical_cores(); cores > 0 && cores < limit.threads) limit = {cores, "physical cores"};
  if (const int cores = quota_cores(); cores > 0 && cores < limit.threads) limit = {cores, "cgroup quota"};
  return limit;
}

void set_up_process(int threads) {
  ::setenv("OMP_NUM_THREADS", std::to_string(threads).c_str(), 1);
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
