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

#include "prism/kernels/flash/forward.h"

namespace prism::flash {

/// Queries whose weights are kept before they are added to the tile's sums: a multiple of the strip height and of the
/// transposed squares.
constexpr int64_t kQueryBlock = 96;
constexpr int64_t kMostTile = 256;

/// A head's queries and output gradients, in blocks of kQueryBlock rows, and the sums of its query gradients.
template <class Op>
struct PreparedHead {
  typename Op::Element *queries, *gradients;      ///< [T, query_width], [T, gradient_width]
  typename Op::Element *queries_t, *gradients_t;  ///< [dim, kQueryBlock] for each block; 0 after the last row
  float *shift, *delta;                           ///< -lse in powers of 2, -delta; all arrays are 0 if no key is seen
  float* dq;                                      ///< [T, key_width]
  int32_t* tiles_done;                            ///< for each block: number of tiles that are done with its dq
};

/// Sizes and offsets of the scratch memory. Each thread has its own share. Prepared heads are in the thread's share if
/// a task is a whole head, else they are shared by all threads.
template <class Op>
struct BackwardLayout {
  using Element = typename Op::Element;
  using P = Panels<Op>;

  bool by_tile;  ///< a task is a tile
  int64_t group, tile, tiles, blocks, query_width, gradient_width, key_width, threads, thread_bytes, head_bytes;
  // Byte offsets in a thread's share.
  int64_t heads, keys, values, key_rows, scores, products, slopes, weight_pairs, slope_pairs, key_sums, value_sums;
  // Byte offsets in a prepared head.
  int64_t queries, gradients, queries_t, gradients_t, shift, delta, dq, tiles_done;

  explicit BackwardLayout(const Problem& p) : threads(p.threads) {
    const int64_t widest = p.key_dim > p.value_dim ? p.key_dim : p.value_dim;
    tile = widest <= 128 ? kMostTile : widest <= 256 ? 128 : 64;  // its sums and packed rows stay in the cache
    tiles = (p.keys + tile - 1) / tile;
    blocks = (p.queries + kQueryBlock - 1) / kQueryBlock;
    group = p.heads / p.kv_heads;
    constexpr int64_t kEnoughHeads = 4;  // per thread, so that no thread is idle for long
    by_tile = tiles > 1 && p.batch * p.kv_heads < kEnoughHeads * threads;
    constexpr int64_t e = sizeof(Element), f = sizeof(float);
    query_width = P::padded_inner(p.key_dim);
    gradient_width = P::padded_inner(p.value_dim);
    key_width = P::padded(p.key_dim);

    Regions head;
    constexpr int64_t kMore = Op::kLeftRows - 1;  // rows after the last that products may read
    queries = head.take((p.queries + kMore) * query_width * e);
    gradients = head.take((p.queries + kMore) * gradient_width * e);
    queries_t = head.take((blocks * p.key_dim + kMore) * kQueryBlock * e);
    gradients_t = head.take((blocks * p.value_dim + kMore) * kQueryBlock * e);
    shift = head.take(p.queries * f);
    delta = head.take(p.queries * f);
    dq = head.take(p.queries * key_width * f);
    tiles_done = head.take(blocks * static_cast<int64_t>(sizeof(int32_t)));
    head_bytes = head.bytes;

    Regions share;
    heads = share.take(by_tile ? 0 : group * head_bytes);
    keys = share.take(P::size(p.key_dim, tile) * e);
    values = share.take(P::size(p.value_dim, tile) * e);
    key_rows = share.take(P::size(tile, p.key_dim) * e);
    scores = share.take(Op::kTileRows * tile * f);
    products = share.take(Op::kTileRows * tile * f);
    slopes = share.take(Op::kTileRows * tile * e);
    weight_pairs = share.take(kQueryBlock * tile * e);
    slope_pairs = share.take(kQueryBlock * tile * e);
    key_sums = share.take(p.key_dim * tile * f);
    value_sums = share.take(p.value_dim * tile * f);
    thread_bytes = share.bytes;
  }

  size_t bytes(const Problem& p) const {
    return static_cast<size_t>(threads * thread_bytes + (by_tile ? p.batch * p.heads * head_bytes : 0));
  }
  std::byte* share(const Backward& b, int64_t thread) const { return b.scratch + thread * thread_bytes; }
  /// Head h in the group of key/value head kv_head, which is counted over the whole batch.
  PreparedHead<Op> prepared(const Backward& b, int64_t thread, int64_t kv_head, int64_t h) const {
    std::byte* at = by_tile ? b.scratch + threads * thread_bytes + (kv_head * group + h) * head_bytes
                            : share(b, thread) + heads + h * head_bytes;
    const auto elements = [at](int64_t offset) { return reinterpret_cast<Element*>(at + offset); };
    const auto floats = [at](int64_t offset) { return reinterpret_cast<float*>(at + offset); };
    return {elements(queries), elements(gradients), elements(queries_t), elements(gradients_t),
            floats(shift),     floats(delta),       floats(dq),          reinterpret_cast<int32_t*>(at + tiles_done)};
  }

 private:
  /// Consecutive regions of memory, each aligned to a cache line.
  struct Regions {
    int64_t bytes = 0;

    int64_t take(int64_t size) {
      const int64_t at = bytes;
      bytes += round_up(size, simd::kLineBytes);
      return at;
    }
  };
};

template <class Op>
void clear(float* to, int64_t count) {
  for (int64_t i = 0; i < count; i += Op::kLanes) Op::store(to + i, Op::zero());
}

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

/// Prepares the rows of one head from `block` on, a multiple of kQueryBlock.
template <class Op, class Storage>
class BlockPreparation {
 public:
  BlockPreparation(const Backward& b, const BackwardLayout<Op>& layout, const PreparedHead<Op>& to, int64_t batch,
                   int64_t head, int64_t block)
      : b_(b),
        l_(layout),
        to_(to),
        batch_(batch),
        head_(head),
        block_(block),
        count_(b.queries - block < kQueryBlock ? b.queries - block : kQueryBlock) {}

  void run() const {
    copy_rows<Op>(row(b_.q, 0), b_.q.row_stride, count_, b_.key_dim, to_.queries + block_ * l_.query_width);
    copy_rows<Op>(row(b_.d_out, 0), b_.d_out.row_stride, count_, b_.value_dim,
                  to_.gradients + block_ * l_.gradient_width);
    transpose(b_.q, b_.key_dim, to_.queries_t + block_ * b_.key_dim);
    transpose(b_.d_out, b_.value_dim, to_.gradients_t + block_ * b_.value_dim);
    const float* lse = b_.lse_BHT + (batch_ * b_.heads + head_) * b_.queries;
    for (int64_t t = 0; t < count_; ++t) {
      const Storage *out = row(b_.out, t), *d_out = row(b_.d_out, t);
      auto sum = Op::zero();
      for (int64_t i = 0; i < b_.value_dim; i += Op::kLanes)
        sum = Op::fma(Op::load_units(out + i, b_.value_dim - i), Op::load_units(d_out + i, b_.value_dim - i), sum);
      to_.delta[block_ + t] = -Op::sum(sum);
      to_.shift[block_ + t] = -lse[block_ + t] * kLog2E;
      if (lse[block_ + t] == simd::kNoScore) forget(t);
    }
    clear<Op>(to_.dq + block_ * l_.key_width, count_ * l_.key_width);
    to_.tiles_done[block_ / kQueryBlock] = 0;
  }

 private:
  const Storage* row(const Matrix& m, int64_t t) const { return row_of<Storage>(m, batch_, head_, block_ + t); }

  /// Zeroes a query that sees no key: it may be uninitialised padding.
  void forget(int64_t t) const {
    const int64_t row = block_ + t;
    to_.delta[row] = to_.shift[row] = 0;
    for (int64_t i = 0; i < b_.key_dim; ++i)
      to_.queries[row * l_.query_width + i] = to_.queries_t[block_ * b_.key_dim + i * kQueryBlock + t] = 0;
    for (int64_t i = 0; i < b_.value_dim; ++i)
      to_.gradients[row * l_.gradient_width + i] = to_.gradients_t[block_ * b_.value_dim + i * kQueryBlock + t] = 0;
  }

  /// [count, dim] -> [dim, kQueryBlock].
  void transpose(const Matrix& m, int64_t dim, typename Op::Element* to) const {
    static_assert(kQueryBlock % (Op::kLanes * Op::kPair) == 0);
    simd::transpose_rows<Op>(row(m, 0), m.row_stride, count_, dim, kQueryBlock, to, kQueryBlock);
  }

  const Backward& b_;
  const BackwardLayout<Op>& l_;
  const PreparedHead<Op>& to_;
  const int64_t batch_, head_, block_, count_;
};

/// Prepares a block of a head. If the head is not kept, sets its query gradients to 0 instead.
template <class Op, class Storage>
void prepare_block(const Backward& b, const BackwardLayout<Op>& layout, const PreparedHead<Op>& to, int64_t batch,
                   int64_t head, int64_t block) {
  if (keeps(b, batch, head)) return BlockPreparation<Op, Storage>(b, layout, to, batch, head, block).run();
  for (int64_t t = block; t < block + kQueryBlock && t < b.queries; ++t) {
    Storage* dq = row_of<Storage>(b.dq, batch, head, t);
    for (int64_t i = 0; i < b.key_dim; ++i) dq[i] = 0;
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
