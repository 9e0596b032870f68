// Forward pass of flash attention. A task goes through the keys tile by tile. Strip by strip, all its query rows use a
// tile before the next one, so a tile is loaded from memory once per task.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cmath>

#include "prism/kernels/flash/flash.h"
#include "prism/kernels/flash/softmax.h"
#include "prism/kernels/simd/range.h"
#include "prism/kernels/simd/tile.h"

namespace prism::flash {

/// Keys of a tile: the keys, their values and the task's own data fit the L2 cache together.
constexpr int64_t kKeyTile = 256;
constexpr float kLn2 = 0.693147180559945309f;
using simd::copy_rows;
using simd::kLog2E;
using simd::multiply_into;
using simd::pack_rows;
using simd::pack_some_rows;
using simd::pack_transposed;
using simd::Panels;
using simd::Range;
using simd::round_up;
using simd::with_known;

/// Scratch memory of one thread: the state of a task between tiles, and buffers for one strip and one tile.
template <class Op>
struct ForwardScratch {
  static_assert(kTaskRows % Op::kLeftRows == 0 && kKeyTile % (Op::kSteps * Op::kPair) == 0);
  alignas(64) typename Op::Element queries[kTaskRows * kMostWidth];
  alignas(64) float sums[kTaskRows * kMostWidth];
  float largest[kTaskRows], total[kTaskRows];
  alignas(64) float scores[Op::kTileRows * kKeyTile];
  alignas(64) typename Op::Element weights[Op::kTileRows * kKeyTile];
};

/// One key/value head, packed.
template <class Op>
struct PackedHead {
  typename Op::Element *keys, *values;  ///< from pack_transposed(); from pack_rows() of each tile, one after the other
  int64_t count, key_dim, value_dim;

  typename Op::Element* value_tile(int64_t first) const { return values + first * Panels<Op>::padded(value_dim); }
};

/// Writes out = weight sums / total and lse of one row; zeros and -inf if the row saw no key.
template <class Op, class Storage>
void write_row(Storage* out, float* lse, int64_t dim, const float* sums, float largest, float total, float c,
               float weight) {
  const auto factor = Op::set(weight / total);
  for (int64_t i = 0; i < dim; i += Op::kLanes)
    Op::store_units(out + i, total == 0 ? Op::zero() : Op::mul(Op::load(sums + i), factor), dim - i);
  *lse = total == 0 ? simd::kNoScore : (largest * c + ::log2f(total)) * kLn2;
}

PRISM_FORCE_INLINE int64_t keys_of(const Forward& f, int64_t batch) {
  return f.lengths_B == nullptr ? f.keys : f.lengths_B[batch];
}

/// Layout of the scratch memory: the packed heads, then the scratch of each thread.
template <class Op>
struct ForwardLayout {
  int64_t keys, values;  ///< elements of one head

  explicit ForwardLayout(const Problem& p)
      : keys(round_up(Panels<Op>::size(p.key_dim, p.keys), kLine)),
        values(round_up(Panels<Op>::size(p.keys, p.value_dim), kLine)) {}

  size_t bytes(const Problem& p) const {
    return heads_bytes(p) + static_cast<size_t>(p.threads) * sizeof(ForwardScratch<Op>);
  }
  PackedHead<Op> head(const Forward& f, int64_t batch, int64_t kv_head) const {
    auto* base = reinterpret_cast<typename Op::Element*>(f.scratch) + (batch * f.kv_heads + kv_head) * (keys + values);
    return {base, base + keys, keys_of(f, batch), f.key_dim, f.value_dim};
  }
  ForwardScratch<Op>& own(const Forward& f, int thread) const {
    return reinterpret_cast<ForwardScratch<Op>*>(f.scratch + heads_bytes(f))[thread];
  }

 private:
  static constexpr int64_t kLine = simd::kLineBytes / sizeof(typename Op::Element);

  size_t heads_bytes(const Problem& p) const {
    return static_cast<size_t>(p.batch * p.kv_heads * (keys + values)) * sizeof(typename Op::Element);
  }
};

template <class Storage>
PRISM_FORCE_INLINE Storage* row_of(const Matrix& m, int64_t batch, int64_t head, int64_t row) {
  return static_cast<Storage*>(m.data) + batch * m.batch_stride + head * m.head_stride + row * m.row_stride;
}

/// Row `row` of a sequence's keys or values, which may be in pages.
template <class Storage>
PRISM_FORCE_INLINE Storage* key_row(const Forward& f, const Matrix& m, int64_t batch, int64_t head, int64_t row) {
  if (!f.pages.defined()) return row_of<Storage>(m, batch, head, row);
  const int64_t page = f.pages.table_BN[batch * f.pages.width + row / f.pages.rows];
  return row_of<Storage>(m, page, head, row % f.pages.rows);
}
/// Calls use(piece) for each part of `rows` whose rows follow each other in memory, in order.
template <class Use>
PRISM_FORCE_INLINE void for_each_piece(const Forward& f, const Range& rows, const Use& use) {
  for (Range piece = rows; !piece.empty(); piece = {piece.end, rows.end}) {
    if (f.pages.defined()) piece.end = std::min(rows.end, (piece.first / f.pages.rows + 1) * f.pages.rows);
    use(piece);
  }
}

/// Some rows of keys or values, as they are stored or unpacked from int8.
template <class Storage>
struct StoredRows {
  const Storage* first;
  int64_t stride;
};

/// @param rows    of one page; at most kPageRows if they are int8.
/// @param unpacked  memory for kPageRows rows of int8.
template <class Op, class Storage>
StoredRows<Storage> stored_rows(const Forward& f, const Matrix& m, const Matrix& scales, int64_t batch, int64_t head,
                                const Range& rows, int64_t dim, Storage* unpacked) {
  if (!f.is_int8()) return {key_row<const Storage>(f, m, batch, head, rows.first), m.row_stride};
  const auto* codes = key_row<const int8_t>(f, m, batch, head, rows.first);
  const auto* scale = key_row<const float>(f, scales, batch, head, rows.first);
  for (int64_t r = 0; r < rows.size(); ++r)
    for (int64_t i = 0; i < dim; i += Op::kLanes)
      Op::store_units(unpacked + r * dim + i,
                      Op::mul(Op::load_units(codes + r * m.row_stride + i, dim - i), Op::set(scale[r])), dim - i);
  return {unpacked, dim};
}

/// Packs the keys and values of a tile, which starts at a multiple of kKeyTile.
/// @param unpacked  memory for kPageRows rows, for int8.
template <class Op, class Storage>
void pack_tile(const Forward& f, const PackedHead<Op>& packed, int64_t batch, int64_t head, const Range& tile,
               Storage* unpacked) {
  for_each_piece(f, tile, [&](const Range& piece) {
    const int64_t step = f.is_int8() ? kPageRows : piece.size();
    for (Range part = piece; !part.empty(); part = {part.end, piece.end}) {
      part.end = std::min(piece.end, part.first + step);
      const auto keys = stored_rows<Op>(f, f.k, f.k_scales, batch, head, part, f.key_dim, unpacked);
      pack_transposed<Op>(keys.first, keys.stride, part.size(), f.key_dim,
                          packed.keys + Panels<Op>::offset(f.key_dim, part.first));
      const auto values = stored_rows<Op>(f, f.v, f.v_scales, batch, head, part, f.value_dim, unpacked);
      pack_some_rows<Op>(values.first, values.stride, tile.size(), {part.first - tile.first, part.end - tile.first},
                         f.value_dim, packed.value_tile(tile.first));
    }
  });
}

template <class Op, class Storage>
void pack_heads(const Forward& f, const ForwardLayout<Op>& layout) {
  static_assert(kPageRows % Panels<Op>::kWidth == 0 && kPageRows % (Op::kPair * Op::kSteps) == 0);
  static_assert(sizeof(ForwardScratch<Op>::sums) >= kPageRows * kMostWidth * sizeof(Storage));
  const int64_t tiles = (f.keys + kKeyTile - 1) / kKeyTile, count = f.batch * f.kv_heads * tiles;
#pragma omp parallel for num_threads(f.threads) schedule(dynamic)
  for (int64_t i = 0; i < count; ++i) {
    const int64_t first = i % tiles * kKeyTile, head = i / tiles % f.kv_heads, batch = i / tiles / f.kv_heads;
    const Range tile{first, std::min(first + kKeyTile, keys_of(f, batch))};
    const PackedHead<Op> packed = layout.head(f, batch, head);
    // No task has begun, so its memory is free.
    auto* unpacked = reinterpret_cast<Storage*>(layout.own(f, omp_get_thread_num()).sums);
    pack_tile<Op>(f, packed, batch, head, tile, unpacked);
  }
}

PRISM_FORCE_INLINE float weight_of(const Forward& f, int64_t batch, int64_t head) {
  return f.weights_BH == nullptr ? 1 : f.weights_BH[batch * f.heads + head];
}

PRISM_FORCE_INLINE bool keeps(const Problem& p, int64_t batch, int64_t head) {
  return p.kept_heads_BH == nullptr || p.kept_heads_BH[batch * p.heads + head];
}

/// Writes the output of a head that is not kept.
template <class Storage>
PRISM_FORCE_INLINE void clear_rows(const Forward& f, const Task& task) {
  for (int64_t t = task.first; t < task.end; ++t) {
    Storage* out = row_of<Storage>(f.out, task.batch, task.head, t);
    for (int64_t e = 0; e < f.value_dim; ++e) out[e] = 0;
    f.lse_BHT[(task.batch * f.heads + task.head) * f.queries + t] = simd::kNoScore;
  }
}

/// Computes softmax(scale q k^T) v of a task's rows.
template <class Op, class Storage>
class ForwardTask {
  using P = Panels<Op>;

 public:
  ForwardTask(const Forward& f, const PackedHead<Op>& head, const Task& task, ForwardScratch<Op>& scratch)
      : f_(f),
        head_(head),
        task_(task),
        scratch_(scratch),
        rows_(static_cast<int>(task.end - task.first)),
        query_stride_(P::padded_inner(head.key_dim)),
        stride_(P::padded(head.value_dim)),
        c_(f.scale * kLog2E),
        first_key_(f.first_key_BT + task.batch * f.queries + task.first),
        end_key_(f.end_key_BT + task.batch * f.queries + task.first) {}

  void run() {
    copy_rows<Op>(row_of<Storage>(f_.q, task_.batch, task_.head, task_.first), f_.q.row_stride, rows_, head_.key_dim,
                  scratch_.queries);
    for (int64_t i = 0; i < rows_ * stride_; i += Op::kLanes) Op::store(scratch_.sums + i, Op::zero());
    for (int r = 0; r < rows_; ++r) {
      scratch_.largest[r] = simd::kNoScore;
      scratch_.total[r] = 0;
    }
    const Range all = seen_by(0, rows_);
    if (!f_.blocks.defined()) {
      attend_keys(all);
    } else if (!all.empty()) {
      attend_blocks(all);
    }
    const float weight = weight_of(f_, task_.batch, task_.head);
    float* lse = f_.lse_BHT + (task_.batch * f_.heads + task_.head) * f_.queries + task_.first;
    for (int r = 0; r < rows_; ++r)
      write_row<Op>(row_of<Storage>(f_.out, task_.batch, task_.head, task_.first + r), lse + r, head_.value_dim,
                    scratch_.sums + r * stride_, scratch_.largest[r], scratch_.total[r], c_, weight);
  }

 private:
  /// The smallest range that holds all keys seen by any of `rows` rows.
  Range seen_by(int row, int rows) const {
    Range seen;
    for (int r = row; r < row + rows; ++r) seen.join({first_key_[r], end_key_[r]});
    return seen;
  }

  void attend_keys(const Range& keys) {
    for (int64_t tile = keys.first / kKeyTile * kKeyTile; tile < keys.end; tile += kKeyTile)
      for (int row = 0; row < rows_; row += Op::kTileRows) attend_tile(row, tile, keys);
  }

  /// Attends to the keys of `all` that are in kept blocks. Adjacent blocks are merged into one range.
  void attend_blocks(const Range& all) {
    const KeptBlocks& blocks = f_.blocks;
    const int64_t row = (task_.batch * f_.heads + task_.head) * blocks.rows + blocks.row_of(task_.batch, task_.first);
    const int32_t* index = blocks.indices_BHMN + row * blocks.width;
    const int64_t count = blocks.counts_BHM[row];
    for (int64_t i = 0; i < count;) {
      const int64_t begin = i++;
      while (i < count && index[i] == index[i - 1] + 1) ++i;
      Range keys{index[begin] * blocks.key_block, (index[i - 1] + int64_t{1}) * blocks.key_block};
      if (keys.first < all.first) keys.first = all.first;
      if (keys.end > all.end) keys.end = all.end;
      if (!keys.empty()) attend_keys(keys);
    }
  }

  /// Adds the visible `keys` of the tile that starts at key `tile` to the strip that starts at `row`.
  void attend_tile(int row, int64_t tile, const Range& keys) {
    const int rows = rows_ - row < Op::kTileRows ? rows_ - row : Op::kTileRows;
    const Range seen = seen_by(row, rows);
    const int64_t low = seen.first > keys.first ? seen.first : keys.first;
    const int64_t high = seen.end < keys.end ? seen.end : keys.end;
    const int64_t end = high < tile + kKeyTile ? high : tile + kKeyTile;
    const int64_t from = low > tile ? (low - tile) / P::kWidth * P::kWidth : 0, begin = tile + from;
    if ((low > begin ? low : begin) >= end) return;
    const int64_t width = round_up(end - begin, 2 * Op::kLanes);
    for (int64_t first = begin; first < end; first += P::kWidth)
      multiply_into<Op>({scratch_.queries + row * query_stride_, query_stride_}, rows,
                        head_.keys + P::offset(head_.key_dim, first), P::vectors(head_.count, first),
                        P::steps(head_.key_dim), nullptr, scratch_.scores + first - begin, kKeyTile);
    for (int r = 0; r < rows; ++r) {
      const int64_t own_first = first_key_[row + r] > keys.first ? first_key_[row + r] : keys.first;
      const int64_t own_end = end_key_[row + r] < keys.end ? end_key_[row + r] : keys.end;
      hide_scores(scratch_.scores + r * kKeyTile, width, own_first - begin, own_end - begin);
    }
    if (!soften_strip(row, rows, width)) return;
    const int64_t in_tile = head_.count - tile < kKeyTile ? head_.count - tile : kKeyTile;
    // Values before the first key are skipped: in a block that is not kept they may be anything, even NaN.
    constexpr int64_t kStepKeys = Op::kPair * Op::kSteps;
    const int64_t unseen = low > begin ? (low - begin) / kStepKeys * kStepKeys : 0;
    for (int64_t first = 0; first < head_.value_dim; first += P::kWidth) {
      const int vectors = P::vectors(head_.value_dim, first);
      const auto* panel = head_.value_tile(tile) + P::offset(in_tile, first) + (from + unseen) * vectors * Op::kLanes;
      float* sums = scratch_.sums + row * stride_ + first;
      multiply_into<Op>({scratch_.weights + unseen, kKeyTile}, rows, panel, vectors, P::steps(end - begin - unseen),
                        sums, sums, stride_);
    }
  }

  /// Turns a strip's scores into weights, adds them to the rows' totals, and rescales the rows' earlier sums.
  /// @return  false, without doing anything, if all scores are negligible beside the largest so far.
  PRISM_FORCE_INLINE bool soften_strip(int row, int rows, int64_t width) {
    constexpr int kLanes = Op::kLanes;
    float tops[(Op::kTileRows + kLanes - 1) / kLanes * kLanes];
    typename Op::Vector lanes[kLanes] = {};
    for (int group = 0; group < rows; group += kLanes) {
      const int count = rows - group < kLanes ? rows - group : kLanes;
      for (int r = 0; r < count; ++r) lanes[r] = largest_lanes<Op>(scratch_.scores + (group + r) * kKeyTile, width);
      Op::store(tops + group, Op::largest_rows(lanes));
    }
    if (f_.skip_below > simd::kNoScore && is_negligible(row, rows, width, tops)) return false;
    for (int r = 0; r < rows; ++r) raise_largest(row + r, tops[r]);
    for (int group = 0; group < rows; group += kLanes) {
      const int count = rows - group < kLanes ? rows - group : kLanes;
      for (int r = 0; r < count; ++r) {
        const int64_t at = (group + r) * kKeyTile;
        lanes[r] =
            weigh_scores<Op>(scratch_.scores + at, width, scratch_.largest[row + group + r], c_, scratch_.weights + at);
      }
      Op::store(tops, Op::sum_rows(lanes));
      for (int r = 0; r < count; ++r) scratch_.total[row + group + r] += tops[r];
    }
    return true;
  }

  /// Scales a row's sums down if `top`, its largest score in the tile, is its largest so far.
  PRISM_FORCE_INLINE void raise_largest(int row, float top) {
    const float before = scratch_.largest[row];
    if (top <= before) return;
    const float past = ::exp2f(c_ * (before - top));
    scratch_.largest[row] = top;
    scratch_.total[row] *= past;
    float* sums = scratch_.sums + row * stride_;
    for (int64_t i = 0; i < stride_; i += Op::kLanes) Op::store(sums + i, Op::mul(Op::load(sums + i), Op::set(past)));
  }

  /// Returns true if the tile's scores are negligible beside the largest so far in every row of a strip.
  /// @param tops  largest score of each row in the tile.
  bool is_negligible(int row, int rows, int64_t width, const float* tops) const {
    // Before a row's first tile its largest score is -inf, and no score is below that.
    for (int r = 0; r < rows; ++r)
      if (tops[r] != simd::kNoScore && !(tops[r] < scratch_.largest[row + r] + f_.skip_below)) return false;
    for (int r = 0; r < rows; ++r)
      if (has_nan<Op>(scratch_.scores + r * kKeyTile, width)) return false;
    return true;
  }

  const Forward& f_;
  const PackedHead<Op>& head_;
  const Task& task_;
  ForwardScratch<Op>& scratch_;
  const int rows_;
  const int64_t query_stride_, stride_;  ///< row strides of the queries and of the sums
  const float c_;
  const int32_t *first_key_, *end_key_;  ///< each row sees the keys [first, end)
};

template <class Op, class Storage>
void run_forward(const Forward& f) {
  const ForwardLayout<Op> layout(f);
  pack_heads<Op, Storage>(f, layout);
#pragma omp parallel num_threads(f.threads)
  {
    [[maybe_unused]] const typename Op::Session session;
#pragma omp for schedule(dynamic)
    for (int64_t i = 0; i < f.task_count; ++i) {
      const Task& task = f.tasks[i];
      if (!keeps(f, task.batch, task.head)) {
        clear_rows<Storage>(f, task);
        continue;
      }
      const auto head = layout.head(f, task.batch, task.head * f.kv_heads / f.heads);
      ForwardTask<Op, Storage>(f, head, task, layout.own(f, omp_get_thread_num())).run();
    }
  }
}

}  // namespace prism::flash
