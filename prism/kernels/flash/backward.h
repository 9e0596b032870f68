// Flash attention, backward: the weights are computed again from the log-sum-exp, one tile of keys at a time.
//
//   P = exp(scale q k^T - lse),  dV = P^T dO,  dS = P (dO V^T - delta),  dQ = scale dS K,  dK = scale dS^T Q
//
// with delta_t = sum_e dO_te O_te. Source: arXiv 2307.08691, algorithm 2.
//
// A task is a key/value head, or where there are few of these a share of its tiles; the queries of its heads are copied
// and transposed once. dV and dK of a tile are summed transposed, so that the weights need no transposing.
#pragma once

#include <omp.h>

#include "prism/kernels/flash/forward.h"

namespace prism::flash {

/// Queries whose weights are kept until the tile's sums take them in.
constexpr int64_t kQueryBlock = 96;

/// Sizes, and where things lie in the scratch memory: a share for each thread, then the query gradients of tasks that
/// have to be added up.
template <class Op>
struct BackwardLayout {
  using Element = typename Op::Element;
  using P = Panels<Op>;

  int64_t group, tile, tiles, chunks, tasks, rows_t, key_width, thread_bytes = 0, dq_bytes, threads;
  // Offsets in a thread's share, in bytes.
  int64_t queries, gradients, queries_t, gradients_t, lse2, delta, dq, keys, values, key_rows, scores, products, slopes,
      weight_pairs, slope_pairs, key_sums, value_sums;

  explicit BackwardLayout(const Problem& p) : threads(p.threads) {
    const int64_t widest = p.key_dim > p.value_dim ? p.key_dim : p.value_dim;
    tile = widest <= 128 ? 256 : widest <= 256 ? 128 : 64;  // the sums and packed rows of a tile stay in the cache
    tiles = (p.keys + tile - 1) / tile;
    group = p.heads / p.kv_heads;
    // By the shape alone, so that the order of all sums is the same for every number of threads.
    constexpr int64_t kEnoughTasks = 16;
    const int64_t heads = p.batch * p.kv_heads;
    chunks = (kEnoughTasks + heads - 1) / heads;
    chunks = chunks < tiles ? chunks : tiles;
    tasks = heads * chunks;
    constexpr int64_t kBlock = Op::kLanes * Op::kPair, e = sizeof(Element), f = sizeof(float);
    rows_t = (p.queries + kBlock - 1) / kBlock * kBlock;
    key_width = P::padded(p.key_dim);
    dq_bytes = round(group * p.queries * key_width * f);
    queries = take(group * p.queries * p.key_dim * e);
    gradients = take(group * p.queries * p.value_dim * e);
    queries_t = take(group * p.key_dim * rows_t * e);
    gradients_t = take(group * p.value_dim * rows_t * e);
    lse2 = take(group * p.queries * f);
    delta = take(group * p.queries * f);
    dq = take(chunks == 1 ? dq_bytes : 0);
    keys = take(P::size(p.key_dim, tile) * e);
    values = take(P::size(p.value_dim, tile) * e);
    key_rows = take(P::size(tile, p.key_dim) * e);
    scores = take(Op::kTileRows * tile * f);
    products = take(Op::kTileRows * tile * f);
    slopes = take(Op::kTileRows * tile * e);
    weight_pairs = take(kQueryBlock * tile * e);
    slope_pairs = take(kQueryBlock * tile * e);
    key_sums = take(p.key_dim * tile * f);
    value_sums = take(p.value_dim * tile * f);
  }

  size_t bytes() const { return static_cast<size_t>(threads * thread_bytes + (chunks == 1 ? 0 : tasks * dq_bytes)); }
  std::byte* share(const Backward& b, int64_t thread) const { return b.scratch + thread * thread_bytes; }
  /// Query gradients of a task's heads: [group, T, key_width].
  float* task_dq(const Backward& b, int64_t thread, int64_t task) const {
    return reinterpret_cast<float*>(chunks == 1 ? share(b, thread) + dq
                                                : b.scratch + threads * thread_bytes + task * dq_bytes);
  }

 private:
  static int64_t round(int64_t bytes) { return (bytes + 63) / 64 * 64; }
  int64_t take(int64_t bytes) {
    const int64_t at = thread_bytes;
    thread_bytes += round(bytes);
    return at;
  }
};

/// out += factor a panels, `rows` rows of float32.
template <class Op>
void add_product(const typename Op::Element* a, int64_t a_stride, int64_t rows, const typename Op::Element* packed,
                 int64_t packed_inner, int64_t steps, int64_t columns, float factor, float* out, int64_t out_stride) {
  using P = Panels<Op>;
  for (int64_t first = 0; first < columns; first += P::kWidth) {
    const auto* panel = packed + P::offset(packed_inner, first);
    for (int64_t row = 0; row < rows; row += Op::kTileRows) {
      const int count = rows - row < Op::kTileRows ? static_cast<int>(rows - row) : Op::kTileRows;
      multiply<Op>({a + row * a_stride, a_stride}, count, panel, P::vectors(columns, first), steps,
                   [&](int r, int v, auto sum) {
                     float* at = out + (row + r) * out_stride + first + v * Op::kLanes;
                     Op::store(at, Op::fma(sum, Op::set(factor), Op::load(at)));
                   });
    }
  }
}

/// A task: the chunk-th share of the tiles of one key/value head, and all queries that see it.
template <class Op, class Storage>
class BackwardTask {
 public:
  using Element = typename Op::Element;
  using P = Panels<Op>;

  BackwardTask(const Backward& b, const BackwardLayout<Op>& layout, int64_t thread, int64_t task)
      : b_(b),
        l_(layout),
        share_(layout.share(b, thread)),
        dq_(layout.task_dq(b, thread, task)),
        chunk_(task % layout.chunks),
        kv_head_(task / layout.chunks % b.kv_heads),
        batch_(task / layout.chunks / b.kv_heads) {}

  void run() {
    for (int64_t i = 0; i < l_.group * b_.queries * l_.key_width; i += Op::kLanes) Op::store(dq_ + i, Op::zero());
    for (int64_t h = 0; h < l_.group; ++h)
      if (keeps(b_, batch_, head(h))) prepare(h);
    for (int64_t tile = chunk_; tile < l_.tiles; tile += l_.chunks) run_tile(tile * l_.tile);
    if (l_.chunks > 1) return;
    for (int64_t h = 0; h < l_.group; ++h)
      for (int64_t t = 0; t < b_.queries; ++t) write_dq(b_, batch_, head(h), t, dq_row(h, t));
  }

  /// @param sums  a row of query gradients, changed to their storage type.
  static void write_dq(const Backward& b, int64_t batch, int64_t head, int64_t t, const float* sums) {
    Storage* to = row_of<Storage>(b.dq, batch, head, t);
    for (int64_t i = 0; i < b.key_dim; i += Op::kLanes) Op::store_units(to + i, Op::load(sums + i), b.key_dim - i);
  }

 private:
  template <class T>
  T* at(int64_t offset) const {
    return reinterpret_cast<T*>(share_ + offset);
  }
  int64_t head(int64_t h) const { return kv_head_ * l_.group + h; }
  float* dq_row(int64_t h, int64_t t) const { return dq_ + (h * b_.queries + t) * l_.key_width; }
  Element* queries(int64_t h) const { return at<Element>(l_.queries) + h * b_.queries * b_.key_dim; }
  Element* gradients(int64_t h) const { return at<Element>(l_.gradients) + h * b_.queries * b_.value_dim; }
  Element* queries_t(int64_t h) const { return at<Element>(l_.queries_t) + h * b_.key_dim * l_.rows_t; }
  Element* gradients_t(int64_t h) const { return at<Element>(l_.gradients_t) + h * b_.value_dim * l_.rows_t; }
  const int32_t* first_key() const { return b_.first_key_BT + batch_ * b_.queries; }
  const int32_t* end_key() const { return b_.end_key_BT + batch_ * b_.queries; }

  /// Queries and gradients of a head as elements, as they lie and transposed, and what belongs to each row.
  void prepare(int64_t h) {
    copy_rows<Op>(row_of<Storage>(b_.q, batch_, head(h), 0), b_.q.row_stride, b_.queries, b_.key_dim, queries(h));
    copy_rows<Op>(row_of<Storage>(b_.d_out, batch_, head(h), 0), b_.d_out.row_stride, b_.queries, b_.value_dim,
                  gradients(h));
    transpose_rows(b_.q, h, b_.key_dim, queries_t(h));
    transpose_rows(b_.d_out, h, b_.value_dim, gradients_t(h));
    const float* lse = b_.lse_BHT + (batch_ * b_.heads + head(h)) * b_.queries;
    for (int64_t t = 0; t < b_.queries; ++t) {
      const Storage* out = row_of<Storage>(b_.out, batch_, head(h), t);
      const Storage* d_out = row_of<Storage>(b_.d_out, batch_, head(h), t);
      auto sum = Op::zero();
      for (int64_t i = 0; i < b_.value_dim; i += Op::kLanes)
        sum = Op::fma(Op::load_units(out + i, b_.value_dim - i), Op::load_units(d_out + i, b_.value_dim - i), sum);
      at<float>(l_.delta)[h * b_.queries + t] = Op::sum(sum);
      at<float>(l_.lse2)[h * b_.queries + t] = lse[t] * kLog2E;
    }
  }

  /// [T, dim] -> [dim, rows_t]; what lies behind the last row is 0.
  void transpose_rows(const Matrix& m, int64_t h, int64_t dim, Element* to) {
    for (int64_t t = 0; t < l_.rows_t; t += Op::kLanes * Op::kPair)
      for (int64_t i = 0; i < dim; i += Op::kLanes) {
        typename Op::Vector block[Op::kLanes];
        for (int s = 0; s < Op::kLanes; ++s) {
          const int64_t row = t + s * Op::kPair;
          const Storage* even = row_of<Storage>(m, batch_, head(h), row) + i;
          const Storage* odd = row + 1 < b_.queries ? even + m.row_stride : nullptr;
          block[s] = row < b_.queries ? Op::interleave(even, odd, dim - i) : Op::zero();
        }
        Op::transpose(block);
        for (int64_t c = 0; c < Op::kLanes && i + c < dim; ++c)
          Op::store(reinterpret_cast<float*>(to + (i + c) * l_.rows_t + t), block[c]);
      }
  }

  void run_tile(int64_t tile_begin) {
    const int64_t left = b_.keys - tile_begin, in_tile = left < l_.tile ? left : l_.tile;
    const Storage* k = row_of<Storage>(b_.k, batch_, kv_head_, tile_begin);
    const Storage* v = row_of<Storage>(b_.v, batch_, kv_head_, tile_begin);
    pack_transposed<Op>(k, b_.k.row_stride, in_tile, b_.key_dim, at<Element>(l_.keys));
    pack_transposed<Op>(v, b_.v.row_stride, in_tile, b_.value_dim, at<Element>(l_.values));
    pack_rows<Op>(k, b_.k.row_stride, in_tile, b_.key_dim, at<Element>(l_.key_rows));
    clear(at<float>(l_.key_sums), b_.key_dim * l_.tile);
    clear(at<float>(l_.value_sums), b_.value_dim * l_.tile);
    for (int64_t h = 0; h < l_.group; ++h) {
      if (!keeps(b_, batch_, head(h))) continue;
      for (int64_t block = 0; block < b_.queries; block += kQueryBlock) run_block(h, block, tile_begin, in_tile);
    }
    write_transposed(b_.dk, tile_begin, in_tile, b_.key_dim, at<float>(l_.key_sums));
    write_transposed(b_.dv, tile_begin, in_tile, b_.value_dim, at<float>(l_.value_sums));
  }

  static void clear(float* to, int64_t count) {
    for (int64_t i = 0; i < count; i += Op::kLanes) Op::store(to + i, Op::zero());
  }

  /// What a block of queries and a tile of keys give to one another.
  void run_block(int64_t h, int64_t block, int64_t tile_begin, int64_t in_tile) {
    const int64_t left = b_.queries - block, count = left < kQueryBlock ? left : kQueryBlock;
    int64_t seen = 0;  // of the tile, by any query
    for (int64_t t = block; t < block + count; ++t) {
      const int64_t end = end_key()[t] - tile_begin, first = first_key()[t] - tile_begin;
      if (first < in_tile && first < end && end > seen) seen = end;
    }
    if (seen == 0) return;
    constexpr int64_t kTwo = 2 * Op::kLanes;
    const int64_t most = seen < in_tile ? seen : in_tile, width = (most + kTwo - 1) / kTwo * kTwo;
    for (int64_t row = 0; row < count; row += Op::kTileRows) {
      const int rows = count - row < Op::kTileRows ? static_cast<int>(count - row) : Op::kTileRows;
      product(queries(h), block + row, rows, b_.key_dim, at<Element>(l_.keys), in_tile, width, at<float>(l_.scores));
      product(gradients(h), block + row, rows, b_.value_dim, at<Element>(l_.values), in_tile, width,
              at<float>(l_.products));
      for (int r = 0; r < rows; r += Op::kPair) slope_pair(h, block + row, row, r, rows, tile_begin, width);
      add_product<Op>(at<Element>(l_.slopes), l_.tile, rows, at<Element>(l_.key_rows), in_tile, P::steps(most),
                      b_.key_dim, b_.scale, dq_row(h, block + row), l_.key_width);
    }
    const int64_t steps = P::steps(count);
    add_product<Op>(gradients_t(h) + block, l_.rows_t, b_.value_dim, at<Element>(l_.weight_pairs), kQueryBlock, steps,
                    width, 1.0f, at<float>(l_.value_sums), l_.tile);
    add_product<Op>(queries_t(h) + block, l_.rows_t, b_.key_dim, at<Element>(l_.slope_pairs), kQueryBlock, steps, width,
                    b_.scale, at<float>(l_.key_sums), l_.tile);
  }

  /// Rows of queries or gradients times the tile's packed keys or values.
  void product(const Element* rows, int64_t first_row, int count, int64_t dim, const Element* packed, int64_t in_tile,
               int64_t width, float* to) {
    for (int64_t first = 0; first < width && first < in_tile; first += P::kWidth)
      multiply<Op>({rows + first_row * dim, dim}, count, packed + P::offset(dim, first), P::vectors(in_tile, first),
                   P::steps(dim),
                   [&](int r, int v, auto sum) { Op::store(to + r * l_.tile + first + v * Op::kLanes, sum); });
  }

  /// Weights and slopes of kPair rows of a strip, from their scores and products: as rows, and as pairs in panels whose
  /// inner axis is the queries of the block.
  void slope_pair(int64_t h, int64_t strip, int64_t in_block, int r, int rows, int64_t tile_begin, int64_t width) {
    for (int i = 0; i < Op::kPair; ++i) {
      if (r + i < rows) {
        slope_row(h, strip + r + i, r + i, tile_begin, width);
      } else {  // fills up the last pair
        clear(at<float>(l_.scores) + (r + i) * l_.tile, width);
        clear(at<float>(l_.products) + (r + i) * l_.tile, width);
      }
    }
    const float* weights = at<float>(l_.scores) + r * l_.tile;
    const float* slopes = at<float>(l_.products) + r * l_.tile;
    const int64_t odd = (Op::kPair - 1) * l_.tile;
    for (int64_t first = 0; first < width; first += P::kWidth) {
      const int vectors = P::vectors(width, first);
      int64_t to = P::offset(kQueryBlock, first) + (in_block + r) * vectors * Op::kLanes;
      for (int64_t j = first; j < first + vectors * Op::kLanes; j += Op::kLanes, to += Op::kLanes * Op::kPair) {
        Op::store_pairs(at<Element>(l_.weight_pairs) + to, Op::load(weights + j), Op::load(weights + j + odd));
        Op::store_pairs(at<Element>(l_.slope_pairs) + to, Op::load(slopes + j), Op::load(slopes + j + odd));
      }
    }
  }

  void slope_row(int64_t h, int64_t t, int r, int64_t tile_begin, int64_t width) {
    float* scores = at<float>(l_.scores) + r * l_.tile;
    float* products = at<float>(l_.products) + r * l_.tile;
    Element* slopes = at<Element>(l_.slopes) + r * l_.tile;
    const auto shift = Op::set(-at<float>(l_.lse2)[h * b_.queries + t]);
    const auto delta = Op::set(-at<float>(l_.delta)[h * b_.queries + t]), c = Op::set(b_.scale * kLog2E);
    for (int64_t j = 0; j < width; j += Op::kLanes) {
      const auto p = simd::exp2<Op>(Op::fma(Op::load(scores + j), c, shift));
      Op::store(scores + j, p);
      Op::store(products + j, Op::mul(p, Op::add(Op::load(products + j), delta)));
    }
    const int64_t first = first_key()[t] - tile_begin, end = end_key()[t] - tile_begin;
    for (int64_t j = 0; j < first && j < width; ++j) scores[j] = products[j] = 0;
    for (int64_t j = end < 0 ? 0 : end; j < width; ++j) scores[j] = products[j] = 0;
    for (int64_t j = 0; j < width; j += 2 * Op::kLanes)
      Op::store_elements(slopes + j, Op::load(products + j), Op::load(products + j + Op::kLanes));
  }

  /// [dim, tile] sums -> rows of keys.
  void write_transposed(const Matrix& m, int64_t tile_begin, int64_t in_tile, int64_t dim, const float* sums) {
    for (int64_t j = 0; j < in_tile; j += Op::kLanes)
      for (int64_t i = 0; i < dim; i += Op::kLanes) {
        typename Op::Vector block[Op::kLanes];
        for (int64_t c = 0; c < Op::kLanes; ++c)
          block[c] = i + c < dim ? Op::load(sums + (i + c) * l_.tile + j) : Op::zero();
        Op::transpose(block);
        for (int64_t c = 0; c < Op::kLanes && j + c < in_tile; ++c)
          Op::store_units(row_of<Storage>(m, batch_, kv_head_, tile_begin + j + c) + i, block[c], dim - i);
      }
  }

  const Backward& b_;
  const BackwardLayout<Op>& l_;
  std::byte* share_;
  float* dq_;
  int64_t chunk_, kv_head_, batch_;
};

/// Adds up what the chunks gave to each query, in their order.
template <class Op, class Storage>
void reduce_dq(const Backward& b, const BackwardLayout<Op>& layout) {
  const int64_t rows = b.batch * b.heads * b.queries;
#pragma omp parallel for num_threads(b.threads) schedule(static)
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t t = row % b.queries, head = row / b.queries % b.heads, batch = row / b.queries / b.heads;
    const int64_t task = (batch * b.kv_heads + head / layout.group) * layout.chunks;
    const int64_t at = (head % layout.group * b.queries + t) * layout.key_width;
    float* sums = layout.task_dq(b, 0, task) + at;
    for (int64_t chunk = 1; chunk < layout.chunks; ++chunk) {
      const float* more = layout.task_dq(b, 0, task + chunk) + at;
      for (int64_t i = 0; i < layout.key_width; i += Op::kLanes)
        Op::store(sums + i, Op::add(Op::load(sums + i), Op::load(more + i)));
    }
    BackwardTask<Op, Storage>::write_dq(b, batch, head, t, sums);
  }
}

template <class Op, class Storage>
void run_backward(const Backward& b) {
  const BackwardLayout<Op> layout(b);
#pragma omp parallel for num_threads(b.threads) schedule(dynamic)
  for (int64_t task = 0; task < layout.tasks; ++task)
    BackwardTask<Op, Storage>(b, layout, omp_get_thread_num(), task).run();
  if (layout.chunks > 1) reduce_dq<Op, Storage>(b, layout);
}

}  // namespace prism::flash
