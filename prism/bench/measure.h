// Timing of calls that take turns, so that whatever slows the machine affects all of them.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace prism {

/// Median milliseconds per call.
struct Medians {
  double prism_ms = 0, peer_ms = 0, limit_ms = 0;
  double ratio() const { return peer_ms / prism_ms; }
};

/// Runs every call once to warm up, then all in turn for `rounds` rounds. @return the median of each, in milliseconds.
std::vector<double> medians_in_turn(const std::vector<std::function<void()>>& calls, int64_t rounds);

/// medians_in_turn() for prism, a peer and a limit.
/// @param peer   may be empty; its median is then 0.
/// @param limit  the minimum work of the task for any program; may be empty.
Medians take_turns(const std::function<void()>& prism, const std::function<void()>& peer, int64_t rounds,
                   const std::function<void()>& limit = {});

/// Measures the growth of resident memory at its peak since construction.
class MemoryPeak {
 public:
  MemoryPeak();
  /// 0 if the system does not report it.
  int64_t extra_bytes() const;

 private:
  int64_t before_;
};

/// The most bytes that tensors allocated during a call hold at once, counted by LibTorch's allocator for the CPU on the
/// calling thread. The same for every call that does the same.
int64_t peak_tensor_bytes(const std::function<void()>& call);

/// Checks that tensors of this number of bytes fit into memory. @param which  what they hold, e.g. "4096 queries and
/// keys".
/// @throws InputError if they do not.
void check_tensors_fit(double bytes, const std::string& which);

/// Reads all of a memory range, split over `threads` threads. @return the sum of its whole 64-bit words.
uint64_t read_through(const void* memory, int64_t bytes, int threads);

/// Bytes per second that `threads` threads read from uncached memory; the best of a few passes.
double read_bandwidth(int threads);

/// Share of the CPU's peak for matrix products of that dtype on that many threads (kernels/peak.h).
double share_of_peak(double flops_per_second, int threads, torch::ScalarType type);

}  // namespace prism
