// The CPU's peak arithmetic throughput, measured by a loop that only touches registers.
#pragma once

#include <string>

namespace prism {

struct PeakSpeed {
  double gflops = 0;        ///< floating-point operations per second / 1e9; a multiply-add counts as two
  std::string instruction;  ///< the instruction that the loop repeats, e.g. "vdpbf16ps 512"
};

/// Runs the loop for about `milliseconds` on `threads` threads, at most as many as can run at once (core_limit()), and
/// adds up each thread's best slice. Slices are timed by the thread's CPU time, so a busy machine shows the same limit
/// as an idle one.
/// @param bfloat16  measures bfloat16 products with float32 sums if they are the fastest (fastest_isa()), else float32.
PeakSpeed measure_peak(int threads, bool bfloat16, double milliseconds = 150);

}  // namespace prism
