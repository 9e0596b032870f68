// Products for rows that are decoded: few rows, so reading W limits them.
//
// An instruction set brings `Ints`: Codes (one block of a strip, unpacked to bytes), load(), dot(), quantise(), and the
// number of rows that share one pass over a strip, kMostRows.
#pragma once

#include <omp.h>

#include <algorithm>
#include <atomic>

#include "prism/kernels/packed/packed.h"
#include "prism/kernels/simd/range.h"
#include "prism/kernels/simd/tile.h"

namespace prism::packed {

using simd::divide_up;
using simd::Range;
using simd::round_up;

constexpr int kPlainRows = 4;  ///< rows of x that share one pass over a strip of bfloat16
/// Bytes by which quantised weights are prefetched before their use, across strips. A strip's codes, scales and minima
/// are three short streams, which the processor's own prefetchers start anew in each strip. Measured on Zen 4 with Q4_1
/// of 576 columns, one thread: 12 GB/s without, 19 at 2 KiB, 28 at 6 KiB, 30 from 12 KiB on, where strips of 1,536
/// columns are at their best, too.
constexpr int64_t kAheadBytes = 12 << 10;
/// Blocks of x that one thread quantises as fast as threads meet at a barrier.
constexpr int64_t kFewBlocks = 64;

/// A value of x is rounded to a code q of 15 bits, and q = 128 high + low, each of 8 bits.
constexpr int kLowBits = 7;
constexpr float kMostCode = 127 << kLowBits;
/// The code of a NaN, which max(x, kLeastCode) gives. Sums of codes fit 32 bits, and the scale makes the result NaN or
/// infinite.
constexpr float kLeastCode = -kMostCode;

/// What one block of a row of x adds to all sums.
struct BlockScale {
  float d = 0;           ///< scale of the codes
  int32_t code_sum = 0;  ///< their sum
  float sum = 0;         ///< d times that

  /// @param most  the block's largest magnitude, maybe NaN. @return  the inverse of its scale; 0 if that overflows.
  PRISM_FORCE_INLINE float begin(float most) {
    constexpr float kLeast = 0x1p-100f;  // so that d is a normal number, and its inverse finite
    d = most < kLeast ? 0 : most / kMostCode;
    return most >= kLeast ? kMostCode / most : 0;
  }
  PRISM_FORCE_INLINE void end(int32_t codes) {
    code_sum = codes;
    sum = d * static_cast<float>(codes);
  }
};

/// Rows of x in blocks of codes with scales.
struct QuantisedRows {
  static constexpr int64_t kBlockCodes = 2 * kBlock;  ///< bytes: the high parts, and the low parts

  int8_t* codes = nullptr;       ///< [M, blocks, 2, 32]
  BlockScale* scales = nullptr;  ///< [M, blocks]
  int64_t blocks = 0;

  static PRISM_FORCE_INLINE size_t bytes(int64_t rows, int64_t blocks) {
    return static_cast<size_t>(rows * blocks) * (kBlockCodes + sizeof(BlockScale));
  }
  PRISM_FORCE_INLINE QuantisedRows(std::byte* memory, int64_t rows, int64_t row_blocks)
      : codes(reinterpret_cast<int8_t*>(memory)),
        scales(reinterpret_cast<BlockScale*>(memory + rows * row_blocks * kBlockCodes)),
        blocks(row_blocks) {}
  PRISM_FORCE_INLINE int8_t* codes_of(int64_t row, int64_t block) const {
    return codes + (row * blocks + block) * kBlockCodes;
  }
  PRISM_FORCE_INLINE BlockScale& scale_of(int64_t row, int64_t block) const { return scales[row * blocks + block]; }
};

/// Calls f(row, count) for passes over rows 0 to `rows`, of Most rows, then 4, then up to 3, as integral constants.
template <int Most, class F>
PRISM_FORCE_INLINE void in_passes(int64_t rows, const F& f) {
  static_assert(Most == 4 || Most == 8);
  int64_t row = 0;
  for (; rows - row >= Most; row += Most) f(row, std::integral_constant<int, Most>());
  if (Most > 4 && rows - row >= 4) {
    f(row, std::integral_constant<int, 4>());
    row += 4;
  }
  if (row < rows) simd::with_known<3>(static_cast<int>(rows - row), [&](auto left) { f(row, left); });
}

/// Sums of one strip, a vector of 16 rows or two of 8.
template <class Ints>
struct StripSums {
  static constexpr int kVectors = static_cast<int>(kStripRows) / Ints::kLanes;
  typename Ints::Vector v[kVectors];
};

/// Adds bias, applies max(0, .) and stores the sums of a strip that belong to rows of W.
template <class Ints>
PRISM_FORCE_INLINE void store_strip(const Problem& p, int64_t row, int64_t strip, const StripSums<Ints>& sums) {
#pragma GCC unroll 2
  for (int i = 0; i < StripSums<Ints>::kVectors; ++i) {
    const int64_t column = strip * kStripRows + i * Ints::kLanes, left = p.w.rows - column;
    if (left <= 0) return;
    auto sum = sums.v[i];
    if (p.bias != nullptr) sum = Ints::add(sum, Ints::load_units(p.bias + column, left));
    if (p.relu) sum = Ints::max(Ints::zero(), sum);  // the second operand, so that a NaN stays
    const int64_t at = row * p.out_stride + column;
    p.out_type == Type::bfloat16 ? Ints::store_units(static_cast<uint16_t*>(p.out) + at, sum, left)
                                 : Ints::store_units(static_cast<float*>(p.out) + at, sum, left);
  }
}

/// One strip of a quantised weight times `Rows` rows of x.
/// @param end  the strips before it may be prefetched.
template <class Ints, BlockType T, int Rows>
PRISM_FORCE_INLINE void multiply_quantised(const Problem& p, const QuantisedRows& x, int64_t first_row, int64_t strip,
                                           int64_t end) {
  constexpr int kVectors = StripSums<Ints>::kVectors;
  constexpr int64_t kBlockBytes = StripLayout(T, 2).minima - StripLayout(T, 1).minima +
                                  (has_minimum(T) ? kStripRows * static_cast<int64_t>(sizeof(uint16_t)) : 0);
  const std::byte* bytes = p.w.data + strip * StripLayout(T, x.blocks).bytes;
  const QuantisedStrip w(bytes, T, x.blocks);
  const int64_t ahead = (end - strip) * StripLayout(T, x.blocks).bytes;
  StripSums<Ints> sums[Rows];
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 2
    for (int i = 0; i < kVectors; ++i) sums[r].v[i] = Ints::zero();
  for (int64_t b = 0; b < x.blocks; ++b) {
    // Another pass over the strip finds it in the cache. Strips beyond the end are another thread's.
    if (first_row == 0 && kAheadBytes + b * kBlockBytes < ahead)
      for (int64_t i = 0; i < kBlockBytes; i += simd::kLineBytes)
        __builtin_prefetch(bytes + kAheadBytes + b * kBlockBytes + i);
    typename Ints::Codes block;
    Ints::template load<T>(w.codes + b * code_bytes(T), w.fifths + b * 8, block);
    typename Ints::Vector d[kVectors], m[kVectors];
#pragma GCC unroll 2
    for (int i = 0; i < kVectors; ++i) {
      d[i] = Ints::load_f16(w.scales + b * kStripRows + i * Ints::kLanes);
      if constexpr (has_minimum(T)) m[i] = Ints::load_f16(w.minima + b * kStripRows + i * Ints::kLanes);
    }
    typename Ints::Vector products[Rows][kVectors];
    Ints::template dot<T, Rows>(block, x, first_row, b, products);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const BlockScale& scale = x.scale_of(first_row + r, b);
      const auto xd = Ints::set(scale.d), xs = Ints::set(scale.sum);
#pragma GCC unroll 2
      for (int i = 0; i < kVectors; ++i) {
        sums[r].v[i] = Ints::fma(products[r][i], Ints::mul(d[i], xd), sums[r].v[i]);
        if constexpr (has_minimum(T)) sums[r].v[i] = Ints::fma(m[i], xs, sums[r].v[i]);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) store_strip<Ints>(p, first_row + r, strip, sums[r]);
}

/// Divides the strips of a weight among threads: in equal shares, of which a thread that is done takes from the end of
/// another's, because threads start and read memory at different speeds. A thread's own strips follow each other in
/// memory.
class StripShares {
 public:
  static size_t bytes(const Problem& p) { return static_cast<size_t>(p.threads * simd::kLineBytes); }

  /// @param memory    bytes() bytes.
  /// @param together  strips that are best multiplied together.
  StripShares(const Problem& p, std::byte* memory, int64_t together) : memory_(memory), count_(p.threads) {
    constexpr int64_t kTakes = 16;  // from a share, if no other thread does
    const int64_t strips = p.w.strips();
    step_ = round_up(std::max<int64_t>(1, strips / (count_ * kTakes)), together);
    for (int64_t i = 0; i < count_; ++i) share(i) = joined({strips * i / count_, strips * (i + 1) / count_});
  }

  /// Calls multiply(strips, end) for the strips that this thread takes, from within a parallel region.
  /// @param end  of those that it may still take after them.
  template <class Multiply>
  PRISM_FORCE_INLINE void run(const Multiply& multiply) {
    for (int64_t i = 0; i < count_; ++i) {
      const bool is_own = i == 0;
      const auto from = share((omp_get_thread_num() + i) % count_);
      uint64_t seen = from.load(std::memory_order_relaxed);
      for (Range left = split(seen); !left.empty(); left = split(seen)) {
        const int64_t count = std::min(step_, left.size());
        const Range taken = is_own ? Range{left.first, left.first + count} : Range{left.end - count, left.end};
        const Range rest = is_own ? Range{taken.end, left.end} : Range{left.first, taken.first};
        if (!from.compare_exchange_weak(seen, joined(rest), std::memory_order_relaxed)) continue;
        multiply(taken, is_own ? left.end : taken.end);
        seen = from.load(std::memory_order_relaxed);
      }
    }
  }

 private:
  /// The strips that are left of thread i's share, as one number.
  std::atomic_ref<uint64_t> share(int64_t i) const {
    return std::atomic_ref(*reinterpret_cast<uint64_t*>(memory_ + i * simd::kLineBytes));
  }
  static uint64_t joined(const Range& strips) {
    return static_cast<uint64_t>(strips.end) << 32 | static_cast<uint64_t>(strips.first);
  }
  static Range split(uint64_t share) {
    return {static_cast<int64_t>(share & 0xFFFFFFFF), static_cast<int64_t>(share >> 32)};
  }

  std::byte* memory_;
  int64_t count_, step_ = 1;
};

/// Calls f with the rows of x as pointers to their type.
template <class F>
PRISM_FORCE_INLINE void with_rows_of(const Problem& p, const F& f) {
  p.type == Type::bfloat16 ? f(static_cast<const uint16_t*>(p.x)) : f(static_cast<const float*>(p.x));
}

template <class Ints, BlockType T>
void decode_quantised(const Problem& p) {
  const int64_t blocks = p.w.blocks();
  StripShares shares(p, p.scratch, /*together=*/1);
  const QuantisedRows x(p.scratch + StripShares::bytes(p), p.rows, blocks);
  const auto quantise = [&](int64_t i) PRISM_INLINE_LAMBDA {
    const int64_t row = i / blocks, block = i % blocks;
    with_rows_of(p, [&](const auto* rows) PRISM_INLINE_LAMBDA {
      Ints::quantise(rows + row * p.x_stride + block * kBlock, x.codes_of(row, block), x.scale_of(row, block));
    });
  };
  const int64_t count = p.rows * blocks;
  const bool is_short = count <= kFewBlocks;
  for (int64_t i = 0; is_short && i < count; ++i) quantise(i);
#pragma omp parallel num_threads(p.threads)
  {
    if (!is_short) {
#pragma omp for schedule(static)
      for (int64_t i = 0; i < count; ++i) quantise(i);
    }
    shares.run([&](const Range& strips, int64_t end) PRISM_INLINE_LAMBDA {
      for (int64_t strip = strips.first; strip < strips.end; ++strip)
        in_passes<Ints::kMostRows>(p.rows, [&](int64_t row, auto rows) PRISM_INLINE_LAMBDA {
          multiply_quantised<Ints, T, rows()>(p, x, row, strip, end);
        });
    });
  }
}

/// Strips of a bfloat16 weight times rows of x, as many strips together as there are registers for.
template <class Ints, int Rows, int Strips>
PRISM_FORCE_INLINE void multiply_plain(const Problem& p, const std::byte* x, int64_t first_row, int64_t strip) {
  constexpr int kVectors = StripSums<Ints>::kVectors;
  const int64_t steps = p.w.blocks() * kBlock / 2, bytes = steps * kStripRows * 4;
  const auto* units = reinterpret_cast<const uint16_t*>(p.w.data + strip * bytes);
  StripSums<Ints> sums[Rows][Strips];
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
    for (int c = 0; c < Strips; ++c)
#pragma GCC unroll 2
      for (int i = 0; i < kVectors; ++i) sums[r][c].v[i] = Ints::zero();
  for (int64_t s = 0; s < steps; ++s) {
    typename Ints::Pair pairs[Strips][kVectors];
#pragma GCC unroll 8
    for (int c = 0; c < Strips; ++c)
#pragma GCC unroll 2
      for (int i = 0; i < kVectors; ++i)
        pairs[c][i] = Ints::load_pairs(units + c * bytes / 2 + (s * kStripRows + i * Ints::kLanes) * 2);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const auto pair = Ints::broadcast_pair(x + ((first_row + r) * steps + s) * Ints::kPairBytes);
#pragma GCC unroll 8
      for (int c = 0; c < Strips; ++c)
#pragma GCC unroll 2
        for (int i = 0; i < kVectors; ++i) sums[r][c].v[i] = Ints::add_pairs(sums[r][c].v[i], pair, pairs[c][i]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
    for (int c = 0; c < Strips; ++c) store_strip<Ints>(p, first_row + r, strip + c, sums[r][c]);
}

template <class Ints>
void decode_plain(const Problem& p) {
  const int64_t steps = p.w.blocks() * kBlock / 2;
  StripShares shares(p, p.scratch, Ints::kStrips);
  std::byte* x = p.scratch + StripShares::bytes(p);
#pragma omp parallel num_threads(p.threads)
  {
    // Rows of x as pairs, padded with zeros.
#pragma omp for schedule(static)
    for (int64_t row = 0; row < p.rows; ++row)
      with_rows_of(p, [&](const auto* rows) PRISM_INLINE_LAMBDA {
        Ints::copy_pairs(rows + row * p.x_stride, p.w.inner, steps, x + row * steps * Ints::kPairBytes);
      });
    shares.run([&](const Range& strips, int64_t) PRISM_INLINE_LAMBDA {
      for (int64_t strip = strips.first; strip < strips.end; strip += Ints::kStrips)
        in_passes<kPlainRows>(p.rows, [&](int64_t row, auto rows) PRISM_INLINE_LAMBDA {
          simd::with_known<Ints::kStrips>(
              static_cast<int>(std::min<int64_t>(Ints::kStrips, strips.end - strip)),
              [&](auto together) { multiply_plain<Ints, rows(), together()>(p, x, row, strip); });
        });
    });
  }
}

template <class Ints>
size_t decoding_scratch(const Problem& p) {
  const int64_t blocks = p.w.blocks();
  return StripShares::bytes(p) + (p.w.type != BlockType::bf16
                                      ? QuantisedRows::bytes(p.rows, blocks)
                                      : static_cast<size_t>(p.rows * blocks * kBlock / 2 * Ints::kPairBytes));
}

template <class Ints>
void multiply_decoding(const Problem& p) {
  with_type(p.w.type, [&](auto type) {
    if constexpr (type() == BlockType::bf16) {
      decode_plain<Ints>(p);
    } else {
      decode_quantised<Ints, type()>(p);
    }
  });
}

}  // namespace prism::packed
