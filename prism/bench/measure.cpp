#include "prism/bench/measure.h"

#include <omp.h>

#include <algorithm>
#include <vector>

#include "prism/core/statistics.h"
#include "prism/core/timer.h"
#include "prism/kernels/peak.h"

namespace prism {
namespace {

double milliseconds(const std::function<void()>& call) {
  const Timer timer;
  call();
  return timer.seconds() * 1e3;
}

}  // namespace

Medians take_turns(const std::function<void()>& prism, const std::function<void()>& peer, int64_t rounds) {
  std::vector<double> ours, theirs;
  for (int64_t i = 0; i < 1 + rounds; ++i) {
    const double ms = milliseconds(prism), peer_ms = peer ? milliseconds(peer) : 0;
    if (i == 0) continue;
    ours.push_back(ms);
    theirs.push_back(peer_ms);
  }
  return {median(ours), median(theirs)};
}

double read_bandwidth(int threads) {
  constexpr int64_t kWords = int64_t{1} << 27;  // 1 GiB
  constexpr int kPasses = 4;
  const std::vector<uint64_t> memory(kWords, 1);
  double best = 0;
  uint64_t sum = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    const Timer timer;
#pragma omp parallel for num_threads(threads) reduction(+ : sum) schedule(static)
    for (int64_t i = 0; i < kWords; ++i) sum += memory[static_cast<size_t>(i)];
    best = std::max(best, static_cast<double>(kWords) * sizeof(uint64_t) / timer.seconds());
  }
  return sum == uint64_t{kPasses} * kWords ? best : 0;  // the sum is used, so that it is computed
}

double share_of_peak(double flops_per_second, int threads, torch::ScalarType type) {
  return flops_per_second / (measure_peak(threads, type == torch::kBFloat16).gflops * 1e9);
}

}  // namespace prism
