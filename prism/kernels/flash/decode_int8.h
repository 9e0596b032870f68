// Decoding over int8 keys and values with products of bytes (decode.h). Scores and weighted sums of 64 keys are exact
// in int32. A row of queries, and the weights of 64 keys times the scales of their values, become 16-bit numbers with
// one scale, which take part as two bytes: their largest errors are 2^-16 (1/65,024) and 2^-17 of the largest number.
#pragma once

#include "prism/kernels/flash/forward.h"

namespace prism::flash {

constexpr int64_t kDecodeChunk = 512;
/// Rows whose weights are multiplied by the values together.
constexpr int64_t kDecodeSlice = 8;
/// Keys whose weights share a scale. They lie in one page.
constexpr int64_t kByteKeys = kPageRows;

/// A row of queries as 16-bit numbers. After the last of them come zeros up to a multiple of 64.
struct ByteQuery {
  alignas(64) int8_t high[kMostWidth], low[kMostWidth];
  int32_t base;  ///< -128 times the sum of the numbers, which cancels the 128 that to_unsigned() adds to keys
  float step;
};

/// The weights of a slice's rows for one chunk.
struct ByteWeights {
  alignas(64) int8_t high[kDecodeSlice][kDecodeChunk], low[kDecodeSlice][kDecodeChunk];
  float step[kDecodeSlice][kDecodeChunk / kByteKeys];
};

template <class Op, class Storage>
PRISM_FORCE_INLINE void make_byte_query(const Storage* query, int64_t dim, ByteQuery& to) {
  auto magnitudes = Op::zero();
  for (int64_t i = 0; i < dim; i += Op::kLanes)
    magnitudes = Op::larger_magnitude(magnitudes, Op::load_units(query + i, dim - i));
  const auto scale = Op::byte_scale(Op::largest_magnitude(magnitudes), Op::kMostSigned);
  auto sum = Op::all_units(0);
  for (int64_t i = 0; i < round_up(dim, Op::kBytesWide); i += Op::kLanes)
    sum = Op::add_numbers(sum, Op::store_signed(Op::mul(Op::load_units(query + i, dim - i), Op::set(scale.inverse)),
                                                to.high + i, to.low + i));
  to.base = -128 * Op::sum_of(sum);
  to.step = scale.step;
}

/// kByteKeys rows of keys or values, and as many rows to prefetch meanwhile.
struct ByteRows {
  const int8_t* first;
  int64_t stride;
  const int8_t* ahead;  ///< null: none

  PRISM_FORCE_INLINE const int8_t* at(int64_t row, int64_t i) const { return first + row * stride + i; }
  PRISM_FORCE_INLINE void fetch(int64_t row, int64_t i) const {
    if (ahead != nullptr) __builtin_prefetch(ahead + row * stride + i, 0, /*locality=*/2);
  }
};

/// Scores of keys [key, key + kLanes) for `Rows` queries. The keys are turned into columns once for all of them.
template <class Op, int Rows>
PRISM_FORCE_INLINE void score_bytes(const ByteQuery* queries, const ByteRows& keys, int64_t key, int64_t dim,
                                    const float* scales, float* scores) {
  typename Op::Bytes low[Rows], high[Rows];
#pragma GCC unroll 4
  for (int r = 0; r < Rows; ++r) {
    low[r] = Op::all_units(queries[r].base);
    high[r] = Op::all_units(0);
  }
  for (int64_t i = 0; i < dim; i += Op::kBytesWide) {
    typename Op::Bytes units[Op::kLanes];
#pragma GCC unroll 16
    for (int j = 0; j < Op::kLanes; ++j) {
      keys.fetch(key + j, i);
      units[j] = Op::to_unsigned(Op::load_bytes(keys.at(key + j, i), dim - i));
    }
    Op::transpose_units(units);
#pragma GCC unroll 16
    for (int c = 0; c < Op::kLanes; ++c)
#pragma GCC unroll 4
      for (int r = 0; r < Rows; ++r) {
        high[r] = Op::add_products(high[r], units[c], queries[r].high + i + 4 * c);
        low[r] = Op::add_products(low[r], units[c], queries[r].low + i + 4 * c);
      }
  }
  const auto key_scales = Op::load(scales);
#pragma GCC unroll 4
  for (int r = 0; r < Rows; ++r)
    Op::store(scores + r * kDecodeChunk,
              Op::mul(Op::mul(Op::to_floats(Op::join(high[r], low[r])), Op::set(queries[r].step)), key_scales));
}

/// Turns the weights of kByteKeys keys, times the scales of their values, into bytes. A weight of 0 stays 0 whatever
/// the scale. @return  the step.
template <class Op>
PRISM_FORCE_INLINE float make_byte_weights(const float* weights, const float* scales, int8_t* high, int8_t* low) {
  constexpr int kVectors = kByteKeys / Op::kLanes;
  typename Op::Vector scaled[kVectors];
  auto magnitudes = Op::zero();
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const auto weight = Op::load(weights + v * Op::kLanes);
    scaled[v] = Op::where_positive(weight, Op::mul(weight, Op::load(scales + v * Op::kLanes)));
    magnitudes = Op::larger_magnitude(magnitudes, scaled[v]);
  }
  const auto scale = Op::byte_scale(Op::largest_magnitude(magnitudes), Op::kMostUnsigned);
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v)
    Op::store_unsigned(Op::mul(scaled[v], Op::set(scale.inverse)), high + v * Op::kLanes, low + v * Op::kLanes);
  return scale.step;
}

/// Adds to `out` weighted sums of the values' columns from `column` on, at most 64.
/// @param first  row of the weights.
/// @param key    of the weights, where the values begin.
template <class Op, int Rows>
PRISM_FORCE_INLINE void add_byte_columns(const ByteWeights& weights, int64_t first, int64_t key, const ByteRows& values,
                                         int64_t column, int64_t dim, float* out, int64_t out_stride) {
  typename Op::Bytes high[Rows][4], low[Rows][4];
#pragma GCC unroll 4
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) high[r][v] = low[r][v] = Op::all_units(0);
  for (int64_t j = 0; j < kByteKeys; j += 4) {
    typename Op::Bytes rows[4], units[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      values.fetch(j + i, column);
      rows[i] = Op::load_bytes(values.at(j + i, column), dim - column);
    }
    Op::interleave_rows(rows, units);
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) {
      const auto upper = Op::broadcast_unit(weights.high[first + r] + key + j);
      const auto lower = Op::broadcast_unit(weights.low[first + r] + key + j);
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) {
        high[r][v] = Op::add_products(high[r][v], upper, units[v]);
        low[r][v] = Op::add_products(low[r][v], lower, units[v]);
      }
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < Rows; ++r) {
    typename Op::Vector sums[4];
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) sums[v] = Op::to_floats(Op::join(high[r][v], low[r][v]));
    Op::order_columns(sums);
    const auto step = Op::set(weights.step[first + r][key / kByteKeys]);
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
      const int64_t at = column + v * Op::kLanes;
      float* to = out + r * out_stride + at;
      if (at < dim) Op::store(to, Op::fma(sums[v], step, Op::load(to)));
    }
  }
}

/// Calls use(first row, their number as a constant) for `rows` rows, at most `Most` at a time.
template <int Most, class Use>
PRISM_FORCE_INLINE void by_rows(int64_t rows, const Use& use) {
  for (int64_t row = 0; row < rows; row += Most)
    with_known<Most>(static_cast<int>(std::min<int64_t>(Most, rows - row)),
                     [&](auto known) PRISM_INLINE_LAMBDA { use(row, known); });
}

}  // namespace prism::flash
