// Backward pass of flash attention. It recomputes the weights from the log-sum-exp, one tile of keys at a time.
//
//   P = exp(scale q k^T - lse),  dV = P^T dO,  dS = P (dO V^T - delta),  dQ = scale dS K,  dK = scale dS^T Q
//
// with delta_t = sum_e dO_te O_te. Source: arXiv 2307.08691, algorithm 2.
//
// The queries of a head are converted to elements once, block by block, both as rows and transposed. dV and dK of a
// tile are summed transposed, so the weights need no transpose. A task is a key/value head or, if there are few heads,
// one tile of a head; the tiles then take turns at each block of queries, so every sum has a fixed order.
#pragma once

#include <sched.h>

#include "prism/kernels/flash/backward_heads.h"

namespace prism::flash {

/// out += factor * a * panel, for `rows` rows of float32.
template <class Op>
void add_panel(const simd::LeftRows<Op>& a, int64_t rows, const typename Op::Element* panel, int vectors, int64_t steps,
               float factor, float* out, int64_t out_stride) {
  for (int64_t row = 0; row < rows; row += Op::kTileRows) {
    const int count = rows - row < Op::kTileRows ? static_cast<int>(rows - row) : Op::kTileRows;
    simd::multiply<Op>({a.first + row * a.stride, a.stride}, count, panel, vectors, steps, [&](int r, int v, auto sum) {
      float* at = out + (row + r) * out_stride + v * Op::kLanes;
      Op::store(at, Op::fma(sum, Op::set(factor), Op::load(at)));
    });
  }
}

/// Processes one key/value head and all queries that see it, tile by tile.
template <class Op, class Storage>
class BackwardTask {
 public:
  using Element = typename Op::Element;
  using P = Panels<Op>;

  /// @param kv_head  counted over the whole batch.
  BackwardTask(const Backward& b, const BackwardLayout<Op>& layout, int64_t thread, int64_t kv_head)
      : b_(b),
        l_(layout),
        thread_(thread),
        share_(layout.share(b, thread)),
        kv_head_(kv_head % b.kv_heads),
        batch_(kv_head / b.kv_heads) {}

  void run() {
    for (int64_t h = 0; h < l_.group; ++h)
      for (int64_t block = 0; block < b_.queries; block += kQueryBlock)
        prepare_block<Op, Storage>(b_, l_, prepared(h), batch_, head(h), block);
    for (int64_t tile = 0; tile < l_.tiles; ++tile) run_tile(tile);
  }

  void run_tile(int64_t tile) {
    tile_ = tile;
    tile_begin_ = tile * l_.tile;
    in_tile_ = b_.keys - tile_begin_ < l_.tile ? b_.keys - tile_begin_ : l_.tile;
    const Storage* k = row_of<Storage>(b_.k, batch_, kv_head_, tile_begin_);
    const Storage* v = row_of<Storage>(b_.v, batch_, kv_head_, tile_begin_);
    pack_transposed<Op>(k, b_.k.row_stride, in_tile_, b_.key_dim, at<Element>(l_.keys));
    pack_transposed<Op>(v, b_.v.row_stride, in_tile_, b_.value_dim, at<Element>(l_.values));
    pack_rows<Op>(k, b_.k.row_stride, in_tile_, b_.key_dim, at<Element>(l_.key_rows));
    clear<Op>(at<float>(l_.key_sums), b_.key_dim * l_.tile);
    clear<Op>(at<float>(l_.value_sums), b_.value_dim * l_.tile);
    for (int64_t h = 0; h < l_.group; ++h)
      for (int64_t block = 0; keeps(b_, batch_, head(h)) && block < b_.queries; block += kQueryBlock) {
        const PreparedHead<Op> to = prepared(h);
        await_turn(to, block);
        run_block(to, block);
        if (tile == l_.tiles - 1) write_dq(to, head(h), block);
        end_turn(to, block);
      }
    write_transposed(b_.dk, b_.key_dim, at<float>(l_.key_sums));
    write_transposed(b_.dv, b_.value_dim, at<float>(l_.value_sums));
  }

 private:
  /// Number of panels in the largest tile.
  static constexpr int64_t kPanels = kMostTile / P::kWidth;
  static_assert(kQueryBlock % Op::kTileRows == 0 && Op::kTileRows % (Op::kSteps * Op::kPair) == 0);

  template <class T>
  T* at(int64_t offset) const {
    return reinterpret_cast<T*>(share_ + offset);
  }
  int64_t head(int64_t h) const { return kv_head_ * l_.group + h; }
  PreparedHead<Op> prepared(int64_t h) const { return l_.prepared(b_, thread_, batch_ * b_.kv_heads + kv_head_, h); }

  /// Waits until all earlier tiles are done with the block. Tasks start in order, so at least one of the earlier tiles
  /// always makes progress.
  void await_turn(const PreparedHead<Op>& head, int64_t block) const {
    constexpr int kPatience = 1000;
    const int32_t* done = head.tiles_done + block / kQueryBlock;
    for (int looks = 0; __atomic_load_n(done, __ATOMIC_ACQUIRE) < tile_;)
      looks < kPatience ? (++looks, __builtin_ia32_pause()) : static_cast<void>(sched_yield());
  }
  void end_turn(const PreparedHead<Op>& head, int64_t block) const {
    __atomic_store_n(head.tiles_done + block / kQueryBlock, static_cast<int32_t>(tile_ + 1), __ATOMIC_RELEASE);
  }

  /// Converts the sums of a block's query gradients to the storage type and writes them.
  void write_dq(const PreparedHead<Op>& from, int64_t head, int64_t block) const {
    for (int64_t t = block; t < block + kQueryBlock && t < b_.queries; ++t) {
      const float* sums = from.dq + t * l_.key_width;
      Storage* to = row_of<Storage>(b_.dq, batch_, head, t);
      for (int64_t i = 0; i < b_.key_dim; i += Op::kLanes) Op::store_units(to + i, Op::load(sums + i), b_.key_dim - i);
    }
  }

  /// The keys of the tile that query t sees.
  Range seen_by(int64_t t) const {
    const int64_t at = batch_ * b_.queries + t;
    const int64_t first = b_.first_key_BT[at] - tile_begin_, end = b_.end_key_BT[at] - tile_begin_;
    return {first > 0 ? first : 0, end < in_tile_ ? end : in_tile_};
  }

  /// Computes all gradients between a block of queries and the tile.
  void run_block(const PreparedHead<Op>& head, int64_t block) {
    const int64_t count = b_.queries - block < kQueryBlock ? b_.queries - block : kQueryBlock;
    Range rows_of_panel[kPanels];  // rows that see some key of the panel
    for (int64_t row = 0; row < count; row += Op::kTileRows) {
      const int rows = count - row < Op::kTileRows ? static_cast<int>(count - row) : Op::kTileRows;
      Range seen;
      for (int64_t t = block + row; t < block + row + rows; ++t) seen.join(seen_by(t));
      seen.first = seen.first / P::kWidth * P::kWidth;
      if (!seen.empty()) run_strip(head, block, row, rows, seen);
      const int64_t whole = round_up(rows, Op::kPair), padded = P::padded_inner(rows);
      for (int64_t panel = 0; panel < kPanels; ++panel) {
        const int64_t first = panel * P::kWidth;
        if (first < seen.end && first >= seen.first) {
          rows_of_panel[panel].join({row, row + rows});
          clear_pairs(first, P::kWidth, row + whole, padded - whole);
        } else if (first < in_tile_) {
          clear_pairs(first, P::kWidth, row, padded);
        }
      }
    }
    for (int64_t panel = 0; panel < kPanels; ++panel) {
      const Range rows = rows_of_panel[panel];
      if (rows.empty()) continue;
      const int64_t first = panel * P::kWidth, pairs = P::offset(kQueryBlock, first) + rows.first * P::kWidth;
      add_panel<Op>({head.gradients_t + block * b_.value_dim + rows.first, kQueryBlock}, b_.value_dim,
                    at<Element>(l_.weight_pairs) + pairs, Op::kTileColumns, P::steps(rows.end - rows.first), 1.0f,
                    at<float>(l_.value_sums) + first, l_.tile);
      add_panel<Op>({head.queries_t + block * b_.key_dim + rows.first, kQueryBlock}, b_.key_dim,
                    at<Element>(l_.slope_pairs) + pairs, Op::kTileColumns, P::steps(rows.end - rows.first), b_.scale,
                    at<float>(l_.key_sums) + first, l_.tile);
    }
  }

  /// @param row   row in the block where the strip starts, a multiple of kTileRows.
  /// @param seen  keys of the tile that any of the rows sees, starting at the beginning of a panel.
  void run_strip(const PreparedHead<Op>& head, int64_t block, int64_t row, int rows, const Range& seen) {
    const int64_t t = block + row;
    product({head.queries + t * l_.query_width, l_.query_width}, rows, b_.key_dim, at<Element>(l_.keys), seen,
            at<float>(l_.scores));
    product({head.gradients + t * l_.gradient_width, l_.gradient_width}, rows, b_.value_dim, at<Element>(l_.values),
            seen, at<float>(l_.products));
    constexpr int64_t kTwo = 2 * Op::kLanes;
    const Range whole{seen.first, (seen.end + kTwo - 1) / kTwo * kTwo};
    for (int r = 0; r < rows; r += Op::kPair) {
      for (int i = 0; i < Op::kPair; ++i) hide_unseen(r + i, r + i < rows ? seen_by(t + r + i) : Range{}, whole);
      find_slopes(r, row, head.shift + t, head.delta + t, rows, whole);
    }
    clear_pairs(whole.end, (P::kWidth - whole.end % P::kWidth) % P::kWidth, row, rows);
    for (int64_t first = 0; first < b_.key_dim; first += P::kWidth) {
      const int vectors = P::vectors(b_.key_dim, first);
      add_panel<Op>({at<Element>(l_.slopes) + seen.first, l_.tile}, rows,
                    at<Element>(l_.key_rows) + P::offset(in_tile_, first) + seen.first * vectors * Op::kLanes, vectors,
                    P::steps(seen.end - seen.first), b_.scale, head.dq + t * l_.key_width + first, l_.key_width);
    }
  }

  /// Multiplies rows of queries or gradients by the tile's packed keys or values.
  void product(const simd::LeftRows<Op>& rows, int count, int64_t dim, const Element* packed, const Range& seen,
               float* to) {
    for (int64_t first = seen.first; first < seen.end; first += P::kWidth)
      multiply_into<Op>(rows, count, packed + P::offset(dim, first), P::vectors(in_tile_, first), P::steps(dim),
                        nullptr, to + first, l_.tile);
  }

  /// Sets weight and slope to 0 for keys that a row of a strip does not see and for rows that only pad a pair.
  void hide_unseen(int r, const Range& seen, const Range& whole) {
    float* scores = at<float>(l_.scores) + r * l_.tile;
    float* products = at<float>(l_.products) + r * l_.tile;
    const auto hide = [&](int64_t j) {
      scores[j] = simd::kNoScore;
      products[j] = 0;
    };
    if (seen.empty()) {
      for (int64_t j = whole.first; j < whole.end; ++j) hide(j);
      return;
    }
    for (int64_t j = whole.first; j < seen.first; ++j) hide(j);
    for (int64_t j = seen.end; j < whole.end; ++j) hide(j);
  }

  /// Computes weights 2^(c s + shift) and slopes P (dO V^T - delta) of kPair rows of a strip. Stores the slopes as
  /// rows, and both as pairs in panels whose inner axis is the rows of the block.
  /// @param r    row in the strip.
  /// @param row  row in the block where the strip starts.
  void find_slopes(int r, int64_t row, const float* shift, const float* delta, int rows, const Range& whole) {
    using Vector = typename Op::Vector;
    const auto c = Op::set(b_.scale * kLog2E);
    const float* scores = at<float>(l_.scores) + r * l_.tile;
    const float* products = at<float>(l_.products) + r * l_.tile;
    Element* slopes = at<Element>(l_.slopes) + r * l_.tile;
    Vector shifts[Op::kPair], deltas[Op::kPair];
    for (int i = 0; i < Op::kPair; ++i) {
      shifts[i] = Op::set(r + i < rows ? shift[r + i] : 0.0f);
      deltas[i] = Op::set(r + i < rows ? delta[r + i] : 0.0f);
    }
    for (int64_t j = whole.first; j < whole.end; j += 2 * Op::kLanes) {
      Vector p[2][Op::kPair], s[2][Op::kPair];
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v)
#pragma GCC unroll 2
        for (int i = 0; i < Op::kPair; ++i) {
          const int64_t from = i * l_.tile + j + v * Op::kLanes;
          p[v][i] = simd::exp2<Op>(Op::fma(Op::load(scores + from), c, shifts[i]));
          s[v][i] = Op::mul(p[v][i], Op::add(Op::load(products + from), deltas[i]));
        }
      const int64_t to = pairs_of(j, row + r);
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) {
        const int64_t vector = to + v * Op::kLanes * Op::kPair;
        Op::store_pairs(at<Element>(l_.weight_pairs) + vector, p[v][0], p[v][Op::kPair - 1]);
        Op::store_pairs(at<Element>(l_.slope_pairs) + vector, s[v][0], s[v][Op::kPair - 1]);
      }
#pragma GCC unroll 2
      for (int i = 0; i < Op::kPair; ++i) Op::store_elements(slopes + i * l_.tile + j, s[0][i], s[1][i]);
    }
  }

  /// Offset of the pairs of key `j` and row `row` of the block. Both must be at the start of a vector or pair.
  static int64_t pairs_of(int64_t j, int64_t row) {
    const int64_t first = j / P::kWidth * P::kWidth;
    return P::offset(kQueryBlock, first) + row * P::kWidth + (j - first) * Op::kPair;
  }

  /// Zeroes weights and slopes of rows of the block for `width` keys of one panel.
  void clear_pairs(int64_t first, int64_t width, int64_t row, int64_t rows) {
    for (int64_t r = row; r < row + rows; r += Op::kPair)
      for (int64_t j = first; j < first + width; j += Op::kLanes)
        for (const int64_t pairs : {l_.weight_pairs, l_.slope_pairs})
          Op::store(reinterpret_cast<float*>(at<Element>(pairs) + pairs_of(j, r)), Op::zero());
  }

  /// Writes [dim, tile] sums as rows of keys.
  void write_transposed(const Matrix& m, int64_t dim, const float* sums) {
    for (int64_t j = 0; j < in_tile_; j += Op::kLanes)
      for (int64_t i = 0; i < dim; i += Op::kLanes) {
        typename Op::Vector block[Op::kLanes];
        for (int64_t c = 0; c < Op::kLanes; ++c)
          block[c] = i + c < dim ? Op::load(sums + (i + c) * l_.tile + j) : Op::zero();
        Op::transpose(block);
        for (int64_t c = 0; c < Op::kLanes && j + c < in_tile_; ++c)
          Op::store_units(row_of<Storage>(m, batch_, kv_head_, tile_begin_ + j + c) + i, block[c], dim - i);
      }
  }

  const Backward& b_;
  const BackwardLayout<Op>& l_;
  const int64_t thread_;
  std::byte* share_;
  const int64_t kv_head_, batch_;
  int64_t tile_ = 0, tile_begin_ = 0, in_tile_ = 0;  ///< index of the tile, its first key, its number of keys
};

/// Prepares all heads for tasks that share them.
template <class Op, class Storage>
void prepare_heads(const Backward& b, const BackwardLayout<Op>& layout) {
  const int64_t count = b.batch * b.heads * layout.blocks;
#pragma omp parallel for num_threads(b.threads) schedule(dynamic)
  for (int64_t i = 0; i < count; ++i) {
    const int64_t head = i / layout.blocks;
    prepare_block<Op, Storage>(b, layout, layout.prepared(b, 0, head / layout.group, head % layout.group),
                               head / b.heads, head % b.heads, i % layout.blocks * kQueryBlock);
  }
}

template <class Op, class Storage>
void run_backward(const Backward& b) {
  const BackwardLayout<Op> layout(b);
  if (layout.by_tile) prepare_heads<Op, Storage>(b, layout);
  const int64_t heads = b.batch * b.kv_heads, tasks = layout.by_tile ? heads * layout.tiles : heads;
  int64_t next = 0;
#pragma omp parallel num_threads(b.threads)
  {
    [[maybe_unused]] const typename Op::Session session;
    // Tasks must start in order, which no OpenMP schedule guarantees: the first tiles of all heads before the second.
    for (int64_t task; (task = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED)) < tasks;) {
      BackwardTask<Op, Storage> work(b, layout, omp_get_thread_num(), task % heads);
      layout.by_tile ? work.run_tile(task / heads) : work.run();
    }
  }
}

}  // namespace prism::flash
