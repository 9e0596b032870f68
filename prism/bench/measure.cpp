#include "prism/bench/measure.h"

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <malloc.h>
#include <omp.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "prism/core/error.h"
#include "prism/core/machine.h"
#include "prism/core/progress.h"
#include "prism/core/statistics.h"
#include "prism/core/stop.h"
#include "prism/core/text/names.h"
#include "prism/core/timer.h"
#include "prism/kernels/peak.h"

namespace prism {
namespace {

double milliseconds(const std::function<void()>& call) {
  const Timer timer;
  call();
  return timer.seconds() * 1e3;
}

/// A value of /proc/self/status, converted from KiB to bytes; 0 if it is missing.
int64_t status_bytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int64_t kib = 0;
    if (word == name && status >> kib) return kib * 1024;
  }
  return 0;
}

}  // namespace

Medians take_turns(const std::function<void()>& prism, const std::function<void()>& peer, int64_t rounds,
                   const std::function<void()>& limit) {
  const auto or_nothing = [](const std::function<void()>& call) { return call ? call : std::function<void()>([] {}); };
  const auto ms = medians_in_turn({prism, or_nothing(peer), or_nothing(limit)}, rounds);
  return {ms[0], peer ? ms[1] : 0, limit ? ms[2] : 0};
}

std::vector<double> medians_in_turn(const std::vector<std::function<void()>>& calls, int64_t rounds) {
  std::vector<std::vector<double>> times(calls.size());
  for (int64_t i = 0; i < 1 + rounds; ++i)
    for (size_t c = 0; c < calls.size(); ++c) {
      check_not_stopped("bench");
      const double ms = milliseconds(calls[c]);
      if (i > 0) times[c].push_back(ms);
    }
  std::vector<double> medians;
  for (const auto& each : times) medians.push_back(median(each));
  return medians;
}

MemoryPeak::MemoryPeak() : before_(0) {
  // Returns freed memory to the system, since reusing it would not show, and resets the recorded peak (man 5 proc).
  ::malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << 5;
  before_ = status_bytes("VmRSS:");
}

int64_t MemoryPeak::extra_bytes() const {
  return std::max<int64_t>(0, status_bytes("VmHWM:") - before_);
}

namespace {

/// Receives the sizes of allocations, and of memory that is freed as negative ones.
class AllocationCount : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void* /*memory*/, int64_t bytes, size_t /*allocated*/, size_t /*reserved*/,
                         c10::Device device) override {
    if (!device.is_cpu()) return;
    held_ += bytes;
    peak_ = std::max(peak_, held_);
  }
  bool memoryProfilingEnabled() const override { return true; }
  int64_t peak() const { return peak_; }

 private:
  int64_t held_ = 0, peak_ = 0;
};

}  // namespace

int64_t peak_tensor_bytes(const std::function<void()>& call) {
  const auto count = std::make_shared<AllocationCount>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, count);
  call();
  return count->peak();
}

void check_tensors_fit(double bytes, const std::string& which) {
  const auto total = static_cast<double>(total_memory_bytes());
  PRISM_CHECK(bytes < total, "bench",
              "expected tensors that fit into memory, {}B; found {}B of them for {}; choose fewer.",
              short_number(total), short_number(bytes), which);
}

uint64_t read_through(const void* memory, int64_t bytes, int threads) {
  const auto* words = static_cast<const uint64_t*>(memory);
  const int64_t count = bytes / static_cast<int64_t>(sizeof(uint64_t));
  uint64_t sum = 0;
#pragma omp parallel for num_threads(threads) reduction(+ : sum) schedule(static)
  for (int64_t i = 0; i < count; ++i) sum += words[i];
  return sum;
}

double read_bandwidth(int threads) {
  constexpr int64_t kWords = int64_t{1} << 27, kBytes = kWords * static_cast<int64_t>(sizeof(uint64_t));  // 1 GiB
  constexpr int kPasses = 4;
  const std::vector<uint64_t> memory(kWords, 1);
  double best = 0;
  uint64_t sum = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    const Timer timer;
    sum += read_through(memory.data(), kBytes, threads);
    best = std::max(best, static_cast<double>(kBytes) / timer.seconds());
  }
  return sum == uint64_t{kPasses} * kWords ? best : 0;  // uses the sum, so that the loop is not optimised away
}

double share_of_peak(double flops_per_second, int threads, torch::ScalarType type) {
  return flops_per_second / (measure_peak(threads, type == torch::kBFloat16).gflops * 1e9);
}

}  // namespace prism
