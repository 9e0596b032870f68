// Attention of a few query rows over many keys. Nothing is packed; keys and values are read from memory once, from the
// first to the last that any row sees.
//
// The keys are split into chunks, one per task. Each chunk yields a maximum, a sum and a weighted sum of values for
// every row, and the chunks of a row are merged in order. Memory-bound if there are few rows.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "prism/kernels/flash/decode_int8.h"

namespace prism::flash {

template <class Op>
struct DecodeLayout {
  int64_t rows, chunks, row_floats;

  explicit DecodeLayout(const Problem& p)
      : rows(p.queries * (p.heads / p.kv_heads)),
        chunks(std::max<int64_t>(1, (p.keys + kDecodeChunk - 1) / kDecodeChunk)),  // without keys, rows are cleared
        row_floats(Panels<Op>::padded(p.value_dim) + Op::kLanes) {}

  size_t bytes(const Problem& p) const {
    return static_cast<size_t>(floats(p)) * sizeof(float) + static_cast<size_t>(p.batch * p.kv_heads) * sizeof(int32_t);
  }
  /// The number of chunks that are not done, for each key/value head of each sequence.
  int32_t* chunks_left(const Forward& f) const {
    return reinterpret_cast<int32_t*>(f.scratch + static_cast<size_t>(floats(f)) * sizeof(float));
  }
  /// A row's partial result: its sums, then its maximum and total.
  float* partial(const Forward& f, int64_t batch, int64_t kv_head, int64_t chunk, int64_t row) const {
    return reinterpret_cast<float*>(f.scratch) +
           (((batch * f.kv_heads + kv_head) * chunks + chunk) * rows + row) * row_floats;
  }

 private:
  int64_t floats(const Problem& p) const { return p.batch * p.kv_heads * chunks * rows * row_floats; }
};

/// True if bfloat16 is widened pair by pair: a vector of first values, then one of second values. This takes half the
/// instructions of widening them in order.
template <class Op, class Storage>
constexpr bool kSplitsPairs = Op::kPair == 1 && std::is_same_v<Storage, uint16_t>;

/// Turns whole pairs of vectors of a row into vectors of first and of second values.
template <class Op>
PRISM_FORCE_INLINE void split_pairs(const uint16_t* row, int64_t dim, float* to) {
  for (int64_t i = 0; i + 2 * Op::kLanes <= dim; i += 2 * Op::kLanes) {
    typename Op::Vector pair[2];
    Op::load_pair(row + i, pair);
    Op::store(to + i, pair[0]);
    Op::store(to + i + Op::kLanes, pair[1]);
  }
}

/// The reverse, in place.
template <class Op>
PRISM_FORCE_INLINE void join_pairs(float* row, int64_t dim) {
  for (int64_t i = 0; i + 2 * Op::kLanes <= dim; i += 2 * Op::kLanes) {
    const typename Op::Vector split[2] = {Op::load(row + i), Op::load(row + i + Op::kLanes)};
    typename Op::Vector joined[2];
    Op::join_pair(split, joined);
    Op::store(row + i, joined[0]);
    Op::store(row + i + Op::kLanes, joined[1]);
  }
}

/// Scores of kLanes keys for one query: dot products along the rows, then sums across lanes.
/// @param query  split as split_pairs() does if the keys are.
template <class Op, class Storage>
PRISM_FORCE_INLINE typename Op::Vector score_keys(const typename Op::Element* query, const Storage* keys,
                                                  int64_t stride, int64_t count, int64_t dim) {
  typename Op::Vector sums[Op::kLanes];
  constexpr int64_t kStep = Op::kLanes * Op::kPair;
#pragma GCC unroll 16
  for (int64_t j = 0; j < Op::kLanes; ++j) {
    sums[j] = Op::zero();
    if (j >= count) continue;
    int64_t i = 0;
    if constexpr (kSplitsPairs<Op, Storage>) {
      for (; i + 2 * kStep <= dim; i += 2 * kStep) {
        typename Op::Vector key[2];
        Op::load_pair(keys + j * stride + i, key);
        sums[j] = Op::step(sums[j], Op::load_step(query + i), key[0]);
        sums[j] = Op::step(sums[j], Op::load_step(query + i + kStep), key[1]);
      }
    }
    for (; i + kStep <= dim; i += kStep)
      sums[j] = Op::step(sums[j], Op::load_step(query + i), Op::load_inner(keys + j * stride + i, kStep));
    if (i < dim)
      sums[j] = Op::step(sums[j], Op::load_inner(query + i, dim - i), Op::load_inner(keys + j * stride + i, dim - i));
  }
  return Op::sum_rows(sums);
}

/// Adds to `out` weighted sums of 2 Columns vectors of columns, starting at `values`. The sums of values that are read
/// in pairs stay split.
template <class Op, int Rows, int Columns, class Storage>
PRISM_FORCE_INLINE void add_columns(const typename Op::Element* weights, const Storage* values, int64_t stride,
                                    int64_t count, float* out, int64_t out_stride) {
  constexpr int64_t kAheadBytes = 2048, kLine = 64 / sizeof(Storage), kColumns = 2 * Columns * Op::kLanes;
  constexpr int64_t kAhead = std::max<int64_t>(1, kAheadBytes / (kColumns * static_cast<int64_t>(sizeof(Storage))));
  typename Op::Vector sums[Rows][2 * Columns];
#pragma GCC unroll 8
  for (int row = 0; row < Rows; ++row)
#pragma GCC unroll 8
    for (int v = 0; v < 2 * Columns; ++v) sums[row][v] = Op::load(out + row * out_stride + v * Op::kLanes);
  const int64_t pairs = count / Op::kPair * Op::kPair;
  for (int64_t j = 0; j < pairs; j += Op::kPair) {
    // Prefetched in memory order, because the loads below are not in that order: two rows at a time.
    for (int64_t row = j; row < j + Op::kPair; ++row)
      for (int64_t i = 0; i < kColumns; i += kLine) __builtin_prefetch(values + (row + kAhead) * stride + i);
    typename Op::Vector weight[Rows];
#pragma GCC unroll 8
    for (int row = 0; row < Rows; ++row) weight[row] = Op::broadcast(weights + row * kDecodeChunk + j);
#pragma GCC unroll 8
    for (int c = 0; c < Columns; ++c) {
      typename Op::Vector units[2];
      const Storage* even = values + j * stride + c * 2 * Op::kLanes;
      if constexpr (kSplitsPairs<Op, Storage>) {
        Op::load_pair(even, units);
      } else {
        Op::interleave(even, even + stride, units);
      }
#pragma GCC unroll 8
      for (int row = 0; row < Rows; ++row)
#pragma GCC unroll 2
        for (int v = 0; v < 2; ++v) sums[row][2 * c + v] = Op::step(sums[row][2 * c + v], weight[row], units[v]);
    }
  }
  for (int row = 0; row < Rows; ++row)
    for (int v = 0; v < 2 * Columns; ++v) {
      if (pairs < count)  // a last key without a partner
        sums[row][v] = Op::step(
            sums[row][v], Op::broadcast(weights + row * kDecodeChunk + pairs),
            Op::interleave(values + pairs * stride + v * Op::kLanes, static_cast<const Storage*>(nullptr), Op::kLanes));
      Op::store(out + row * out_stride + v * Op::kLanes, sums[row][v]);
    }
}

/// Adds to `out` weighted sums of `count` rows of values. Takes as many columns at a time as there are registers for
/// their sums, so that values are read in memory order; takes the remaining columns one vector at a time.
template <class Op, int Rows, class Storage>
PRISM_FORCE_INLINE void add_values(const typename Op::Element* weights, const Storage* values, int64_t stride,
                                   int64_t count, int64_t dim, float* out, int64_t out_stride) {
  constexpr int kSums = Op::kSums * 2 / 3, kMost = kSums / 2 / Rows > 1 ? kSums / 2 / Rows : 1;
  constexpr int64_t kTwo = 2 * Op::kLanes;
  int64_t i = 0;
  while (i + kTwo <= dim) {
    const int columns = static_cast<int>(std::min<int64_t>(kMost, (dim - i) / kTwo));
    with_known<kMost>(columns, [&](auto known) {
      add_columns<Op, Rows, known()>(weights, values + i, stride, count, out + i, out_stride);
    });
    i += columns * kTwo;
  }
  for (; i < dim; i += Op::kLanes) {
    typename Op::Vector sums[Rows];
    for (int row = 0; row < Rows; ++row) sums[row] = Op::load(out + row * out_stride + i);
    for (int64_t j = 0; j < count; j += Op::kPair) {
      const Storage* even = values + j * stride + i;
      const auto units = Op::interleave(even, j + 1 < count ? even + stride : nullptr, dim - i);
#pragma GCC unroll 8
      for (int row = 0; row < Rows; ++row)
        sums[row] = Op::step(sums[row], Op::broadcast(weights + row * kDecodeChunk + j), units);
    }
    for (int row = 0; row < Rows; ++row) Op::store(out + row * out_stride + i, sums[row]);
  }
}

/// Processes one chunk of keys of one key/value head.
template <class Op, class Storage>
class DecodeTask {
  using P = Panels<Op>;

 public:
  DecodeTask(const Forward& f, const DecodeLayout<Op>& layout, int64_t batch, int64_t kv_head, int64_t chunk)
      : f_(f), l_(layout), batch_(batch), kv_head_(kv_head), chunk_(chunk), padded_(P::padded(f.value_dim)) {}

  void run() {
    Range seen;
    for (int64_t row = 0; row < l_.rows; ++row) {
      float* sums = partial(row);
      for (int64_t i = 0; i < padded_; i += Op::kLanes) Op::store(sums + i, Op::zero());
      sums[padded_] = simd::kNoScore;
      sums[padded_ + 1] = 0;
      seen.join(seen_by(row));
    }
    for (int64_t row = 0; !seen.empty() && row < l_.rows; row += kDecodeSlice)
      run_slice(row, l_.rows - row < kDecodeSlice ? l_.rows - row : kDecodeSlice, seen);
  }

 private:
  int64_t head(int64_t row) const { return kv_head_ * (f_.heads / f_.kv_heads) + row / f_.queries; }
  float* partial(int64_t row) const { return l_.partial(f_, batch_, kv_head_, chunk_, row); }

  /// Keys of the chunk that a row sees; none if its head is not kept.
  Range seen_by(int64_t row) const {
    if (!keeps(f_, batch_, head(row))) return {};
    const int64_t at = batch_ * f_.queries + row % f_.queries, first = chunk_ * kDecodeChunk;
    const int64_t end = f_.end_key_BT[at] < first + kDecodeChunk ? f_.end_key_BT[at] : first + kDecodeChunk;
    return {f_.first_key_BT[at] > first ? f_.first_key_BT[at] : first, end};
  }

  /// @param seen  keys of the chunk that any row sees.
  void run_slice(int64_t first_row, int64_t rows, const Range& seen) {
    if (!f_.is_int8()) return run_elements<Storage>(first_row, rows, seen);
    if constexpr (Op::kBytes) {
      run_bytes(first_row, rows, seen);
    } else {
      run_elements<int8_t>(first_row, rows, seen);
    }
  }

  /// Multiplies as elements of Op.
  /// @tparam Stored  type of keys and values; int8_t requires that elements are float32.
  template <class Stored>
  void run_elements(int64_t first_row, int64_t rows, const Range& seen) {
    constexpr bool kScaled = std::is_same_v<Stored, int8_t>;
    static_assert(!kScaled || std::is_same_v<typename Op::Element, float>);
    constexpr int64_t kTwo = 2 * Op::kLanes;
    static_assert(kDecodeChunk % kTwo == 0 && kPageRows % kTwo == 0);
    // Vectors of keys and pairs of values begin at multiples, so a row's sums do not depend on what other rows see.
    const Range keys{seen.first / kTwo * kTwo, seen.end}, values{seen.first / Op::kPair * Op::kPair, seen.end};
    alignas(64) typename Op::Element query[kMostWidth + Op::kLanes];
    alignas(64) float scores[kDecodeChunk];
    alignas(64) typename Op::Element weights[kDecodeSlice][kDecodeChunk];
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t row = first_row + r;
      if (!seen_by(row).empty()) {
        const auto* q = row_of<Storage>(f_.q, batch_, head(row), row % f_.queries);
        copy_rows<Op>(q, 0, 1, f_.key_dim, query);
        if constexpr (kSplitsPairs<Op, Stored>) split_pairs<Op>(q, f_.key_dim, query);
        for_each_piece(f_, keys, [&](const Range& piece) PRISM_INLINE_LAMBDA {
          score_piece<Stored>(query, piece, scores + piece.first - keys.first);
        });
      }
      soften(row, keys.first, round_up(keys.size(), kTwo), scores, weights[r]);
      if constexpr (kScaled)
        for_each_piece(f_, keys, [&](const Range& piece) PRISM_INLINE_LAMBDA {
          const auto* scales = key_row<const float>(f_, f_.v_scales, batch_, kv_head_, piece.first);
          float* scaled = weights[r] + piece.first - keys.first;
          for (int64_t j = 0; j < piece.size(); j += Op::kLanes) {
            const auto weight = Op::load(scaled + j);  // a weight of 0 stays 0, whatever the scale
            Op::store(scaled + j, Op::where_positive(weight, Op::mul(weight, Op::load(scales + j))));
          }
        });
    }
    for_each_piece(f_, values, [&](const Range& piece) PRISM_INLINE_LAMBDA {
      const auto* first = key_row<const Stored>(f_, f_.v, batch_, kv_head_, piece.first);
      with_known<kDecodeSlice>(static_cast<int>(rows), [&](auto known) {
        add_values<Op, known()>(weights[0] + piece.first - keys.first, first, f_.v.row_stride, piece.size(),
                                f_.value_dim, partial(first_row), l_.row_floats);
      });
    });
  }

  /// Scores of one query for the keys of a piece.
  template <class Stored>
  PRISM_FORCE_INLINE void score_piece(const typename Op::Element* query, const Range& piece, float* scores) {
    const auto* keys = key_row<const Stored>(f_, f_.k, batch_, kv_head_, piece.first);
    for (int64_t j = 0; j < piece.size(); j += Op::kLanes) {
      auto sums = score_keys<Op>(query, keys + j * f_.k.row_stride, f_.k.row_stride, piece.size() - j, f_.key_dim);
      if constexpr (std::is_same_v<Stored, int8_t>)
        sums = Op::mul(sums, Op::load(key_row<const float>(f_, f_.k_scales, batch_, kv_head_, piece.first) + j));
      Op::store(scores + j, sums);
    }
  }

  /// Multiplies int8 keys and values as bytes, kByteKeys keys at a time.
  void run_bytes(int64_t first_row, int64_t rows, const Range& seen) {
    const Range keys{seen.first / kByteKeys * kByteKeys, round_up(seen.end, kByteKeys)};
    ByteQuery queries[kDecodeSlice];
    alignas(64) float scores[kDecodeSlice][kDecodeChunk];
    ByteWeights weights;
    for (int64_t r = 0; r < rows; ++r)
      make_byte_query<Op>(row_of<const Storage>(f_.q, batch_, head(first_row + r), (first_row + r) % f_.queries),
                          f_.key_dim, queries[r]);
    for (int64_t key = 0; key < keys.size(); key += kByteKeys) {
      const int64_t at = keys.first + key;
      const auto* first = key_row<const int8_t>(f_, f_.k, batch_, kv_head_, at);
      const auto* scales = key_row<const float>(f_, f_.k_scales, batch_, kv_head_, at);
      const ByteRows group{first, f_.k.row_stride, rows_ahead(/*are_keys=*/true, at)};
      by_rows<4>(rows, [&](int64_t r, auto known) PRISM_INLINE_LAMBDA {
        for (int64_t j = 0; j < kByteKeys; j += Op::kLanes)
          score_bytes<Op, known()>(queries + r, group, j, f_.key_dim, scales + j, scores[r] + key + j);
      });
    }
    for (int64_t r = 0; r < rows; ++r) soften(first_row + r, keys.first, keys.size(), scores[r], scores[r]);
    for (int64_t key = 0; key < keys.size(); key += kByteKeys) {
      const int64_t at = keys.first + key;
      const auto* first = key_row<const int8_t>(f_, f_.v, batch_, kv_head_, at);
      const auto* scales = key_row<const float>(f_, f_.v_scales, batch_, kv_head_, at);
      for (int64_t r = 0; r < rows; ++r)
        weights.step[r][key / kByteKeys] =
            make_byte_weights<Op>(scores[r] + key, scales, weights.high[r] + key, weights.low[r] + key);
      const ByteRows group{first, f_.v.row_stride, rows_ahead(/*are_keys=*/false, at)};
      by_rows<3>(rows, [&](int64_t r, auto known) PRISM_INLINE_LAMBDA {
        for (int64_t i = 0; i < f_.value_dim; i += Op::kBytesWide)
          add_byte_columns<Op, known()>(weights, r, key, group, i, f_.value_dim, partial(first_row + r), l_.row_floats);
      });
    }
  }

  /// The group of rows to prefetch while the one at `row` is used: a chunk's keys come before its values, and the next
  /// chunk after them. Hardware does not know where the next page is.
  const int8_t* rows_ahead(bool are_keys, int64_t row) const {
    constexpr int64_t kAheadBytes = 8192;
    const int64_t dim = are_keys ? f_.key_dim : f_.value_dim;
    int64_t at = row + std::max<int64_t>(1, kAheadBytes / dim / kByteKeys) * kByteKeys;
    const bool is_past = at >= (row / kDecodeChunk + 1) * kDecodeChunk;
    if (is_past && are_keys) at -= kDecodeChunk;
    if (at >= keys_of(f_, batch_)) return nullptr;
    return key_row<const int8_t>(f_, are_keys == is_past ? f_.v : f_.k, batch_, kv_head_, at);
  }

  /// Turns the scores of a row into weights, and notes their maximum and sum.
  /// @param first  the key of the first score.
  template <class Weight>
  PRISM_FORCE_INLINE void soften(int64_t row, int64_t first, int64_t width, float* scores, Weight* weights) {
    const Range own = seen_by(row);
    float* sums = partial(row);
    hide_scores(scores, width, own.first - first, own.end - first);
    sums[padded_] = Op::largest(largest_lanes<Op>(scores, width));
    sums[padded_ + 1] = Op::sum(weigh_scores<Op>(scores, width, sums[padded_], f_.scale * kLog2E, weights));
  }

  const Forward& f_;
  const DecodeLayout<Op>& l_;
  const int64_t batch_, kv_head_, chunk_, padded_;
};

/// Merges the chunks i of one query row: out = w sum_i 2^(c (m_i - m)) out_i / sum_i 2^(c (m_i - m)) l_i. Clears a row
/// whose head is not kept.
template <class Op, class Storage>
void merge_chunks(const Forward& f, const DecodeLayout<Op>& layout, int64_t batch, int64_t kv_head, int64_t row) {
  const int64_t t = row % f.queries, head = kv_head * (f.heads / f.kv_heads) + row / f.queries;
  if (!keeps(f, batch, head)) return clear_rows<Storage>(f, {batch, head, t, t + 1});
  const int64_t padded = Panels<Op>::padded(f.value_dim);
  const float c = f.scale * kLog2E;
  float* merged = layout.partial(f, batch, kv_head, 0, row);
  for (int64_t chunk = 1; chunk < layout.chunks; ++chunk) {
    const float* more = layout.partial(f, batch, kv_head, chunk, row);
    if (more[padded + 1] == 0) continue;
    if (merged[padded + 1] == 0) {  // no key was seen so far
      std::copy(more, more + padded + 2, merged);
      continue;
    }
    const float largest = merged[padded] > more[padded] ? merged[padded] : more[padded];
    const float a = ::exp2f(c * (merged[padded] - largest)), b = ::exp2f(c * (more[padded] - largest));
    for (int64_t i = 0; i < padded; i += Op::kLanes)
      Op::store(merged + i, Op::fma(Op::set(b), Op::load(more + i), Op::mul(Op::set(a), Op::load(merged + i))));
    merged[padded] = largest;
    merged[padded + 1] = a * merged[padded + 1] + b * more[padded + 1];
  }
  if constexpr (kSplitsPairs<Op, Storage>) {
    if (!f.is_int8()) join_pairs<Op>(merged, f.value_dim);
  }
  write_row<Op>(row_of<Storage>(f.out, batch, head, t), f.lse_BHT + (batch * f.heads + head) * f.queries + t,
                f.value_dim, merged, merged[padded], merged[padded + 1], c, weight_of(f, batch, head));
}

/// Each thread takes consecutive chunks, so that prefetches past the end of a chunk reach the start of its next one.
/// The thread that ends a head's last chunk merges all of them, and no other thread waits for it.
template <class Op, class Storage>
void run_decode(const Forward& f) {
  const DecodeLayout<Op> layout(f);
  const int64_t heads = f.batch * f.kv_heads, tasks = heads * layout.chunks;
  const int64_t run = std::max<int64_t>(1, tasks / (8 * f.threads));
  auto* left = layout.chunks_left(f);
  for (int64_t i = 0; i < heads; ++i) left[i] = static_cast<int32_t>(layout.chunks);
#pragma omp parallel for num_threads(f.threads) schedule(dynamic, run)
  for (int64_t i = 0; i < tasks; ++i) {
    const int64_t head = i / layout.chunks, batch = head / f.kv_heads, kv_head = head % f.kv_heads;
    DecodeTask<Op, Storage>(f, layout, batch, kv_head, i % layout.chunks).run();
    if (std::atomic_ref(left[head]).fetch_sub(1, std::memory_order_acq_rel) > 1) continue;
    for (int64_t row = 0; row < layout.rows; ++row) merge_chunks<Op, Storage>(f, layout, batch, kv_head, row);
  }
}

}  // namespace prism::flash
