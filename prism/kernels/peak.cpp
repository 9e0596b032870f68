#include "prism/kernels/peak.h"

#include <immintrin.h>
#include <omp.h>

#include <algorithm>

#include "prism/core/machine.h"
#include "prism/core/timer.h"
#include "prism/kernels/simd/amx_tiles.h"
#include "prism/kernels/simd/isa.h"

namespace prism {
namespace {

// Sixteen independent accumulators cover latency times throughput of all FMA units to date.
constexpr int kAccumulators = 16;
constexpr int64_t kRepeats = 20000;

// The empty asm keeps each accumulator in its register and stops the compiler from folding the loop.
#define PRISM_FOR_ACCUMULATORS(body)                                   \
  for (int64_t repeat = 0; repeat < kRepeats; ++repeat) {              \
    _Pragma("GCC unroll 16") for (int i = 0; i < kAccumulators; ++i) { \
      body;                                                            \
      asm volatile("" : "+v"(sums[i]));                                \
    }                                                                  \
  }

/// Products of whole tiles: four tiles of sums, two of rows and two of columns, all zeros.
__attribute__((target("amx-tile,amx-bf16"))) double run_amx() {
  _tile_loadconfig(&simd::kWholeTiles);
  for (int64_t repeat = 0; repeat < kRepeats; ++repeat) {
    for (int i = 0; i < kAccumulators; i += 4) {
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(1, 4, 7);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_release();
  return 16.0 * 16 * 64;
}

__attribute__((target("avx512f,avx512bf16"))) double run_bf16() {
  __m512 sums[kAccumulators] = {};
  const __m512bh a = (__m512bh)_mm512_setzero_si512(), b = a;
  PRISM_FOR_ACCUMULATORS(sums[i] = _mm512_dpbf16_ps(sums[i], a, b))
  return 64.0;
}

__attribute__((target("avx512f"))) double run_avx512() {
  __m512 sums[kAccumulators] = {};
  const __m512 a = _mm512_setzero_ps();
  PRISM_FOR_ACCUMULATORS(sums[i] = _mm512_fmadd_ps(a, a, sums[i]))
  return 32.0;
}

__attribute__((target("avx2,fma"))) double run_avx2() {
  __m256 sums[kAccumulators] = {};
  const __m256 a = _mm256_setzero_ps();
  PRISM_FOR_ACCUMULATORS(sums[i] = _mm256_fmadd_ps(a, a, sums[i]))
  return 16.0;
}

double run_sse() {
  __m128 sums[kAccumulators] = {};
  const __m128 a = _mm_setzero_ps();
  PRISM_FOR_ACCUMULATORS(sums[i] = _mm_add_ps(_mm_mul_ps(a, a), sums[i]))
  return 8.0;
}

#undef PRISM_FOR_ACCUMULATORS

struct Loop {
  double (*run)();  ///< runs kRepeats x kAccumulators instructions, returns operations per instruction
  const char* instruction;
};

Loop choose_loop(bool bfloat16) {
  const Isa best = fastest_isa();
  if (bfloat16 && best == Isa::amx_bf16) return {run_amx, "tdpbf16ps"};
  if (bfloat16 && best == Isa::avx512_bf16) return {run_bf16, "vdpbf16ps 512"};
  if (best >= Isa::avx512) return {run_avx512, "vfmadd 512"};
  if (best == Isa::avx2) return {run_avx2, "vfmadd 256"};
  return {run_sse, "mulps + addps 128"};
}

/// Operations per second of the calling thread in its best slice. Uses the thread's CPU time instead of wall time, so
/// that other processes do not lower the result.
double measure_thread(const Loop& loop, double milliseconds) {
  double best = 0;
  const Timer whole;
  do {
    const double began = thread_seconds();
    const double operations = loop.run() * static_cast<double>(kRepeats) * kAccumulators;
    best = std::max(best, operations / (thread_seconds() - began));
  } while (whole.seconds() * 1e3 < milliseconds);
  return best;
}

}  // namespace

PeakSpeed measure_peak(int wanted, bool bfloat16, double milliseconds) {
  const int threads = std::min(wanted, core_limit().threads);
  const Loop loop = choose_loop(bfloat16);
  double sum = 0;
#pragma omp parallel for num_threads(threads) reduction(+ : sum) schedule(static, 1)
  for (int thread = 0; thread < threads; ++thread) sum += measure_thread(loop, milliseconds);
  return {sum / 1e9, loop.instruction};
}

}  // namespace prism
