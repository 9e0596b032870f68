// Scratch memory of the backward pass, and heads prepared in it: their queries and output gradients converted to
// elements.
//
//   const BackwardLayout<Op> layout(problem);                                  // layout.bytes(problem) of scratch
//   memory prepare_block<Op, Storage>(problem, layout, layout.prepared(problem, thread, kv_head, h), batch, head,
//   block);
#pragma once

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

}  // namespace prism::flash
