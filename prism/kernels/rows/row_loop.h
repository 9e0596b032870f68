// A loop over the values of a row: whole vectors, then the rest.
#pragma once

#include <cstdint>

#include "prism/kernels/simd/force_inline.h"

namespace prism::rows {

/// The values [first, first + kLanes) of a row.
template <class Op>
struct WholeVector {
  using Vector = typename Op::Vector;
  int64_t first;

  template <class Storage>
  PRISM_FORCE_INLINE Vector load(const Storage* row) const {
    return Op::load(row + first);
  }
  template <class Storage>
  PRISM_FORCE_INLINE void store(Storage* row, Vector x) const {
    Op::store(row + first, x);
  }
  /// x with 0 in the lanes beyond the row's end.
  PRISM_FORCE_INLINE Vector inside(Vector x) const { return x; }
};

/// The last `count` values of a row, fewer than kLanes; the other lanes load 0.
template <class Op>
struct PartialVector {
  using Vector = typename Op::Vector;
  int64_t first, count;

  template <class Storage>
  PRISM_FORCE_INLINE Vector load(const Storage* row) const {
    return Op::load_units(row + first, count);
  }
  template <class Storage>
  PRISM_FORCE_INLINE void store(Storage* row, Vector x) const {
    Op::store_units(row + first, x, count);
  }
  PRISM_FORCE_INLINE Vector inside(Vector x) const {
    float lanes[Op::kLanes];
    Op::store(lanes, x);
    return Op::load_units(lanes, count);
  }
};

/// Calls body(part) for each vector of a row of `count` values.
template <class Op, class Body>
PRISM_FORCE_INLINE void for_each_vector(int64_t count, const Body& body) {
  int64_t i = 0;
  for (; i + Op::kLanes <= count; i += Op::kLanes) body(WholeVector<Op>{i});
  if (i < count) body(PartialVector<Op>{i, count - i});
}

}  // namespace prism::rows
