// What this CPU can compute at best: a loop that only touches registers, on all threads.
#pragma once

#include <string>

namespace prism {

struct PeakSpeed {
  double gflops = 0;        ///< floating-point operations per second / 1e9, a multiply-add counts as two
  std::string instruction;  ///< what the loop was made of, e.g. "vdpbf16ps 512"
};

/// Runs the loop for about `milliseconds` on `threads` threads, no more than run at the same time (core_limit()), and
/// adds up each one's best slice. Slices are timed by the CPU time of the thread, so that a busy machine shows the same
/// limit as an idle one.
/// @param bfloat16  the limit of bfloat16 products with float32 sums where the CPU has them, else that of float32.
PeakSpeed measure_peak(int threads, bool bfloat16, double milliseconds = 150);

}  // namespace prism
