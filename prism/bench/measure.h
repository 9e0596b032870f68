// Programs that take turns, so that whatever slows the machine slows both.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace prism {

/// Milliseconds of one call.
struct Medians {
  double prism_ms = 0, peer_ms = 0, limit_ms = 0;
  double ratio() const { return peer_ms / prism_ms; }
};

/// Calls all once without counting, then in turn `rounds` times each. @return each one's median, in milliseconds.
std::vector<double> medians_in_turn(const std::vector<std::function<void()>>& calls, int64_t rounds);

/// Calls all once without counting, then in turn `rounds` times each, and takes the medians.
/// @param peer   may be empty: its median is 0 then.
/// @param limit  what no program of that task could do without; may be empty.
Medians take_turns(const std::function<void()>& prism, const std::function<void()>& peer, int64_t rounds,
                   const std::function<void()>& limit = {});

/// How much more resident memory the process took at its peak than when this was made.
class MemoryPeak {
 public:
  MemoryPeak();
  /// 0 where the system does not say.
  int64_t extra_bytes() const;

 private:
  int64_t before_;
};

/// Reads memory from end to end on `threads` threads, each its part. @return the sum of its whole 64-bit words.
uint64_t read_through(const void* memory, int64_t bytes, int threads);

/// Bytes a second that `threads` threads read from memory that no cache holds; the best of a few passes.
double read_bandwidth(int threads);

/// "bf16" or "f32". @throws InputError naming them.
torch::ScalarType find_bench_dtype(const std::string& name);

/// Of what the CPU can compute in products of that type on that many threads (kernels/peak.h).
double share_of_peak(double flops_per_second, int threads, torch::ScalarType type);

}  // namespace prism
