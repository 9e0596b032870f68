// Products of small matrices whose right side is packed in panels: the inner loops of flash attention and of gemm.
//
// A panel holds kTileColumns vectors of columns (the last panel of a matrix may hold fewer). A panel stores step after
// step along the inner axis, each with its columns side by side. With pairs, a step is two neighbouring inner indices.
// If steps are taken kSteps at a time, those after the last inner index are zeros.
#pragma once

#include <cstdint>
#include <type_traits>

#include "prism/kernels/simd/force_inline.h"
#include "prism/kernels/simd/range.h"

namespace prism::simd {

/// @tparam Vectors  vectors of columns in a panel.
template <class Op, int Vectors = Op::kTileColumns>
struct Panels {
  static constexpr int64_t kWidth = Op::kLanes * Vectors;

  static int64_t steps(int64_t inner) { return padded_inner(inner) / Op::kPair; }
  /// Number of inner indices, padded to whole groups of kSteps steps.
  static int64_t padded_inner(int64_t inner) { return round_up(inner, Op::kPair * Op::kSteps); }
  /// Number of vectors of columns in the panel that starts at column `first` of `columns`.
  static int vectors(int64_t columns, int64_t first) {
    const int64_t left = columns - first;
    return left >= kWidth ? Vectors : static_cast<int>((left + Op::kLanes - 1) / Op::kLanes);
  }
  /// Number of columns, padded to whole vectors.
  static int64_t padded(int64_t columns) { return round_up(columns, Op::kLanes); }
  /// Number of elements of a packed matrix.
  static int64_t size(int64_t inner, int64_t columns) { return padded_inner(inner) * padded(columns); }
  /// Offset of the panel that starts at column `first`, a multiple of kWidth.
  static int64_t offset(int64_t inner, int64_t first) { return padded_inner(inner) * first; }
};

/// The rows of a product's left side. Their number is padded to a multiple of kLeftRows with rows of any content. Each
/// row is padded with zeros like a panel.
template <class Op>
struct LeftRows {
  const typename Op::Element* first;
  int64_t stride;            ///< elements from one row to the next
  int64_t step = Op::kPair;  ///< elements from one step of a row to the next; must be kPair if kLeftRows > 1
};

/// The order of a panel's vectors: at each step side by side.
template <class Op>
struct SideBySide {
  static constexpr int64_t kUnits = Op::kLanes * Op::kPair;
  /// Elements from one step to the next, in a panel of `columns` vectors.
  PRISM_FORCE_INLINE int64_t step(int columns) const { return columns * kUnits; }
  /// Elements from one vector of a step to the next.
  PRISM_FORCE_INLINE int64_t vector() const { return kUnits; }
};
/// The order of a panel's vectors: one vector after the other, each with all its steps.
template <class Op>
struct OneByOne {
  int64_t stride = 0;  ///< elements from one vector to the next
  PRISM_FORCE_INLINE int64_t step(int) const { return Op::kLanes * Op::kPair; }
  PRISM_FORCE_INLINE int64_t vector() const { return stride; }
};

/// sums[r][c] += row r of a times the panel's columns, over `steps` steps.
template <class Op, int Rows, int Columns, class Order>
PRISM_FORCE_INLINE void multiply_panel(const LeftRows<Op>& a, const typename Op::Element* panel, Order order,
                                       int64_t steps, typename Op::Vector (&sums)[Rows][Columns]) {
  for (int64_t s = 0; s < steps; ++s) {
    typename Op::Vector b[Columns];
#pragma GCC unroll 8
    for (int c = 0; c < Columns; ++c) b[c] = Op::load_step(panel + s * order.step(Columns) + c * order.vector());
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const auto x = Op::broadcast(a.first + r * a.stride + s * a.step);
#pragma GCC unroll 8
      for (int c = 0; c < Columns; ++c) sums[r][c] = Op::step(sums[r][c], x, b[c]);
    }
  }
}

/// Calls f with `value`, 1 to Most, as an integral constant, so that loops of that length stay in registers.
template <int Most, class F>
PRISM_FORCE_INLINE void with_known(int value, F&& f) {
  if constexpr (Most > 1) {
    if (value < Most) return with_known<Most - 1>(value, f);
  }
  f(std::integral_constant<int, Most>());
}

/// Multiplies up to kTileRows rows by a panel and calls `store(row, vector of columns, sum)` for each sum.
/// @param vectors  number of vectors of columns in the panel.
template <class Op, class Store, class Order = SideBySide<Op>>
PRISM_FORCE_INLINE void multiply(const LeftRows<Op>& a, int rows, const typename Op::Element* panel, int vectors,
                                 int64_t steps, Store&& store, Order order = {}) {
  if constexpr (Op::kSteps > 1) {
    Op::multiply(a, rows, panel, order, vectors, steps, store);
  } else {
    with_known<Op::kTileRows>(rows, [&](auto known_rows) {
      with_known<Op::kTileColumns>(vectors, [&](auto known_columns) {
        constexpr int kRows = known_rows(), kColumns = known_columns();
        typename Op::Vector sums[kRows][kColumns] = {};
        multiply_panel<Op>(a, panel, order, steps, sums);
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
          for (int v = 0; v < kColumns; ++v) store(r, v, sums[r][v]);
      });
    });
  }
}

/// The same, but stores to = product + before, row-major. A null `before` means zeros; it may also be `to`.
/// @param to  its number of rows must be padded to a multiple of kLeftRows, because rows after the last may be
///            overwritten. The same holds for `before`.
template <class Op>
PRISM_FORCE_INLINE void multiply_into(const LeftRows<Op>& a, int rows, const typename Op::Element* panel, int vectors,
                                      int64_t steps, const float* before, float* to, int64_t stride) {
  if constexpr (Op::kSteps > 1) {
    Op::multiply_into(a, rows, panel, SideBySide<Op>(), vectors, steps, before, stride, to, stride);
  } else {
    multiply<Op>(a, rows, panel, vectors, steps, [&](int r, int v, auto sum) PRISM_INLINE_LAMBDA {
      const int64_t i = r * stride + v * Op::kLanes;
      Op::store(to + i, before == nullptr ? sum : Op::add(Op::load(before + i), sum));
    });
  }
}

/// Copies rows of `inner` values as elements, one after the other, padded to be the left side of a product.
template <class Op, class Storage>
void copy_rows(const Storage* rows, int64_t stride, int64_t count, int64_t inner, typename Op::Element* to) {
  const int64_t width = Panels<Op>::padded_inner(inner);
  for (int64_t r = 0; r < count; ++r)
    for (int64_t i = 0; i < width; i += Op::kLanes * Op::kPair)
      Op::store_inner(to + r * width + i, Op::load_inner(rows + r * stride + i, inner - i), width - i);
}

/// to[c][r] = rows[r][c] as elements, for r < `padded`, a multiple of kLanes kPair: 0 from `count` on.
template <class Op, class Storage>
void transpose_rows(const Storage* rows, int64_t stride, int64_t count, int64_t columns, int64_t padded,
                    typename Op::Element* to, int64_t to_stride) {
  for (int64_t r = 0; r < padded; r += Op::kLanes * Op::kPair)
    for (int64_t c = 0; c < columns; c += Op::kLanes) {
      typename Op::Vector square[Op::kLanes];
      for (int s = 0; s < Op::kLanes; ++s) {
        const int64_t even = r + s * Op::kPair, odd = even + 1;
        const Storage* from = rows + even * stride + c;
        square[s] =
            even < count ? Op::interleave(from, odd < count ? from + stride : nullptr, columns - c) : Op::zero();
      }
      Op::transpose(square);
      for (int64_t i = 0; i < Op::kLanes && c + i < columns; ++i)
        Op::store(reinterpret_cast<float*>(to + (c + i) * to_stride + r), square[i]);
    }
}

/// Packs columns that are stored as rows of `inner` values (keys for q k^T): the rows become panel columns.
/// @tparam Vectors  vectors of columns in a panel.
/// @param rows      number of rows; the last vector is padded with zeros.
template <class Op, int Vectors = Op::kTileColumns, class Storage>
void pack_transposed(const Storage* source, int64_t stride, int64_t rows, int64_t inner, typename Op::Element* packed) {
  using P = Panels<Op, Vectors>;
  const int64_t steps = P::steps(inner);
  for (int64_t first = 0; first < rows; first += P::kWidth) {
    const int vectors = P::vectors(rows, first);
    for (int v = 0; v < vectors; ++v) {
      for (int64_t s = 0; s < steps; s += Op::kLanes) {
        typename Op::Vector block[Op::kLanes];
        for (int i = 0; i < Op::kLanes; ++i) {
          const int64_t row = first + v * Op::kLanes + i;
          block[i] =
              row < rows ? Op::load_inner(source + row * stride + s * Op::kPair, inner - s * Op::kPair) : Op::zero();
        }
        Op::transpose(block);
        for (int i = 0; i < Op::kLanes && s + i < steps; ++i) {
          auto* to = packed + P::offset(inner, first) + ((s + i) * vectors + v) * Op::kLanes * Op::kPair;
          Op::store(reinterpret_cast<float*>(to), block[i]);
        }
      }
    }
  }
}

/// Packs some rows of a row-major matrix (values for p v): the inner index is the row, with `columns` values per row.
/// @param source  the first row of `part`.
/// @param rows    of the whole matrix.
/// @param part    the rows to pack; its ends are multiples of kPair kSteps, except for the end of the matrix.
template <class Op, class Storage>
void pack_some_rows(const Storage* source, int64_t stride, int64_t rows, const Range& part, int64_t columns,
                    typename Op::Element* packed) {
  using P = Panels<Op>;
  for (int64_t first = 0; first < columns; first += P::kWidth) {
    const int vectors = P::vectors(columns, first);
    for (int64_t s = part.first / Op::kPair; s < P::steps(part.end); ++s) {
      const Storage* even = source + (s * Op::kPair - part.first) * stride;
      const Storage* odd = s * Op::kPair + 1 < part.end ? even + stride : nullptr;
      const bool there = s * Op::kPair < part.end;
      for (int v = 0; v < vectors; ++v) {
        const int64_t at = first + v * Op::kLanes;
        auto* to = packed + P::offset(rows, first) + (s * vectors + v) * Op::kLanes * Op::kPair;
        Op::store(reinterpret_cast<float*>(to),
                  there ? Op::interleave(even + at, odd == nullptr ? nullptr : odd + at, columns - at) : Op::zero());
      }
    }
  }
}

/// Packs all rows of a row-major matrix.
template <class Op, class Storage>
void pack_rows(const Storage* source, int64_t stride, int64_t rows, int64_t columns, typename Op::Element* packed) {
  pack_some_rows<Op>(source, stride, rows, {0, rows}, columns, packed);
}

}  // namespace prism::simd
