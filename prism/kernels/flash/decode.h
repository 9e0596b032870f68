// Attention of a few query rows over many keys: nothing is packed, every key and value is read once.
//
// The keys are split into chunks, one a task; each gives every row a maximum, a sum and a weighted sum of values, and
// the chunks of a row are merged in their order. Bound by memory where rows are few.
#pragma once

#include "prism/kernels/flash/forward.h"

namespace prism::flash {

/// Query rows of one key/value head: all queries of all its heads.
constexpr int64_t kMostDecodeRows = 8;
constexpr int64_t kDecodeChunk = 512;
/// Rows from what is read to what is asked for: a page, and no less than a step of the loop.
template <class Op, class Storage>
PRISM_FORCE_INLINE int64_t rows_ahead(int64_t dim) {
  return std::max<int64_t>(Op::kLanes, 4096 / (dim * static_cast<int64_t>(sizeof(Storage))) / 2 * 2);
}

PRISM_FORCE_INLINE bool decodes(const Problem& p) {
  return p.queries * (p.heads / p.kv_heads) <= kMostDecodeRows;
}

template <class Op>
struct DecodeLayout {
  int64_t rows, chunks, row_floats;

  explicit DecodeLayout(const Problem& p)
      : rows(p.queries * (p.heads / p.kv_heads)),
        chunks((p.keys + kDecodeChunk - 1) / kDecodeChunk),
        row_floats(Panels<Op>::padded(p.value_dim) + Op::kLanes) {}

  size_t bytes(const Problem& p) const {
    return static_cast<size_t>(p.batch * p.kv_heads * chunks * rows * row_floats) * sizeof(float);
  }
  /// A row's sums, then its maximum and total.
  float* partial(const Forward& f, int64_t batch, int64_t kv_head, int64_t chunk, int64_t row) const {
    return reinterpret_cast<float*>(f.scratch) +
           (((batch * f.kv_heads + kv_head) * chunks + chunk) * rows + row) * row_floats;
  }
};

/// Scores of kLanes keys for one query: dot products along the rows, summed across by a transposition.
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
    for (; i + kStep <= dim; i += kStep)
      sums[j] = Op::step(sums[j], Op::load_step(query + i), Op::load_inner(keys + j * stride + i, kStep));
    if (i < dim)
      sums[j] = Op::step(sums[j], Op::load_inner(query + i, dim - i), Op::load_inner(keys + j * stride + i, dim - i));
  }
  Op::transpose(sums);
  for (int64_t step = 1; step < Op::kLanes; step *= 2)
    for (int64_t j = 0; j + step < Op::kLanes; j += 2 * step) sums[j] = Op::add(sums[j], sums[j + step]);
  return sums[0];
}

/// Asks for rows that are read soon: the processor's own look-ahead ends at every page.
template <class Storage>
PRISM_FORCE_INLINE void prefetch_rows(const Storage* rows, int64_t stride, int64_t count, int64_t dim) {
  constexpr int64_t kLine = 64 / sizeof(Storage);
  for (int64_t row = 0; row < count; ++row)
    for (int64_t i = 0; i < dim; i += kLine) __builtin_prefetch(rows + row * stride + i);
}

/// Weighted sums of `count` values, two vectors of columns at a time; what is left of the columns one by one.
template <class Op, int Rows, class Storage>
PRISM_FORCE_INLINE void add_values(const typename Op::Element* weights, const Storage* values, int64_t stride,
                                   int64_t count, int64_t dim, float* out, int64_t out_stride) {
  const int64_t ahead = rows_ahead<Op, Storage>(dim);
  int64_t i = 0;
  for (; i + 2 * Op::kLanes <= dim; i += 2 * Op::kLanes) {
    typename Op::Vector sums[Rows][2] = {}, units[2];
    int64_t j = 0;
    for (; j + Op::kPair <= count; j += Op::kPair) {
      const Storage* even = values + j * stride + i;
      __builtin_prefetch(even + ahead * stride);
      __builtin_prefetch(even + (ahead + 1) * stride);
      Op::interleave(even, even + stride, units);
#pragma GCC unroll 8
      for (int row = 0; row < Rows; ++row) {
        const auto weight = Op::broadcast(weights + row * kDecodeChunk + j);
        sums[row][0] = Op::step(sums[row][0], weight, units[0]);
        sums[row][1] = Op::step(sums[row][1], weight, units[1]);
      }
    }
    for (int row = 0; row < Rows; ++row)
      for (int v = 0; v < 2; ++v) {
        if (j < count)  // a last key without a partner
          sums[row][v] = Op::step(sums[row][v], Op::broadcast(weights + row * kDecodeChunk + j),
                                  Op::interleave(values + j * stride + i + v * Op::kLanes,
                                                 static_cast<const Storage*>(nullptr), Op::kLanes));
        Op::store(out + row * out_stride + i + v * Op::kLanes, sums[row][v]);
      }
  }
  for (; i < dim; i += Op::kLanes) {
    typename Op::Vector sums[Rows] = {};
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

/// One chunk of keys of one key/value head.
template <class Op, class Storage>
void decode_chunk(const Forward& f, const DecodeLayout<Op>& layout, int64_t batch, int64_t kv_head, int64_t chunk) {
  using P = Panels<Op>;
  const int64_t first = chunk * kDecodeChunk, left = f.keys - first, count = left < kDecodeChunk ? left : kDecodeChunk;
  const int64_t width = (count + 2 * Op::kLanes - 1) / (2 * Op::kLanes) * (2 * Op::kLanes);
  const int64_t group = f.heads / f.kv_heads, padded = P::padded(f.value_dim);
  alignas(64) typename Op::Element query[kMostWidth + Op::kLanes];
  alignas(64) float scores[kDecodeChunk];
  alignas(64) typename Op::Element weights[kMostDecodeRows][kDecodeChunk];
  for (int64_t row = 0; row < layout.rows; ++row) {
    const int64_t t = row % f.queries, head = kv_head * group + row / f.queries;
    float* sums = layout.partial(f, batch, kv_head, chunk, row);
    float &largest = sums[padded], &total = sums[padded + 1];
    largest = -std::numeric_limits<float>::infinity();
    total = 0;
    for (int64_t i = 0; i < padded; i += Op::kLanes) Op::store(sums + i, Op::zero());
    const int64_t begin = f.first_key_BT[batch * f.queries + t] - first,
                  end = f.end_key_BT[batch * f.queries + t] - first;
    copy_rows<Op>(row_of<Storage>(f.q, batch, head, t), 0, 1, f.key_dim, query);
    const Storage* keys = row_of<Storage>(f.k, batch, kv_head, first);
    const int64_t ahead = rows_ahead<Op, Storage>(f.key_dim);
    for (int64_t j = 0; j < count; j += Op::kLanes) {
      if (row == 0) prefetch_rows(keys + (j + ahead) * f.k.row_stride, f.k.row_stride, Op::kLanes, f.key_dim);
      Op::store(scores + j, score_keys<Op>(query, keys + j * f.k.row_stride, f.k.row_stride, count - j, f.key_dim));
    }
    soften_row<Op>(scores, width, begin, end < count ? end : count, f.scale * kLog2E, &largest, &total, weights[row]);
  }
  with_known<kMostDecodeRows>(static_cast<int>(layout.rows), [&](auto rows) {
    float* sums = layout.partial(f, batch, kv_head, chunk, 0);
    add_values<Op, rows()>(weights[0], row_of<Storage>(f.v, batch, kv_head, first), f.v.row_stride, count, f.value_dim,
                           sums, layout.row_floats);
  });
}

/// The chunks of one query row, by their maxima: out = sum_c 2^(c (m_c - m)) out_c / sum_c 2^(c (m_c - m)) l_c.
template <class Op, class Storage>
void merge_chunks(const Forward& f, const DecodeLayout<Op>& layout, int64_t batch, int64_t head, int64_t t) {
  const int64_t group = f.heads / f.kv_heads, kv_head = head / group, row = head % group * f.queries + t;
  const int64_t padded = Panels<Op>::padded(f.value_dim);
  const float c = f.scale * kLog2E;
  float* merged = layout.partial(f, batch, kv_head, 0, row);
  for (int64_t chunk = 1; chunk < layout.chunks; ++chunk) {
    const float* more = layout.partial(f, batch, kv_head, chunk, row);
    if (more[padded + 1] == 0) continue;
    const float largest = merged[padded] > more[padded] ? merged[padded] : more[padded];
    const float a = ::exp2f(c * (merged[padded] - largest)), b = ::exp2f(c * (more[padded] - largest));
    for (int64_t i = 0; i < padded; i += Op::kLanes)
      Op::store(merged + i, Op::fma(Op::set(b), Op::load(more + i), Op::mul(Op::set(a), Op::load(merged + i))));
    merged[padded] = largest;
    merged[padded + 1] = a * merged[padded + 1] + b * more[padded + 1];
  }
  write_row<Op>(row_of<Storage>(f.out, batch, head, t), f.lse_BHT + (batch * f.heads + head) * f.queries + t,
                f.value_dim, merged, merged[padded], merged[padded + 1], c);
}

template <class Op, class Storage>
void run_decode(const Forward& f) {
  const DecodeLayout<Op> layout(f);
  const int64_t tasks = f.batch * f.kv_heads * layout.chunks, rows = f.batch * f.heads * f.queries;
  const int64_t run = std::max<int64_t>(1, tasks / (8 * f.threads));
#pragma omp parallel num_threads(f.threads)
  {
    // Runs of chunks, so that what a thread asks for at the end of one is the beginning of its next.
#pragma omp for schedule(dynamic, run)
    for (int64_t i = 0; i < tasks; ++i)
      decode_chunk<Op, Storage>(f, layout, i / layout.chunks / f.kv_heads, i / layout.chunks % f.kv_heads,
                                i % layout.chunks);
#pragma omp for schedule(static)
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t t = i % f.queries, head = i / f.queries % f.heads, batch = i / f.queries / f.heads;
      if (keeps(f, batch, head)) {
        merge_chunks<Op, Storage>(f, layout, batch, head, t);
      } else {
        clear_rows<Storage>(f, {batch, head, t, t + 1});
      }
    }
  }
}

}  // namespace prism::flash
