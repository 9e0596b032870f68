// Operand types of products. An operand type defines the Element, the number of neighbours along the inner axis in one
// step of a product (kPair), the number of steps taken at a time (kSteps), and how rows become steps. A "unit" is the
// 32 bits of one step and one column.
#pragma once

#include <cstdint>

#include "prism/kernels/simd/force_inline.h"

namespace prism::simd {

/// Products that take one step at a time, accept any number of rows and need no processor state.
struct StepByStep {
  static constexpr int kSteps = 1;
  static constexpr int kLeftRows = 1;
  static constexpr int64_t kPanelBytes = 256 << 10;  ///< of a panel in one block of the inner axis: fits the L2 cache
  static constexpr int64_t kGroupPanels = 4;         ///< panels of a thread's block in a product
  struct Session {};
};

/// What an operand type inherits if its instruction set has no products of bytes (bytes_avx512_vnni.h).
struct NoByteProducts {
  static constexpr bool kBytes = false;
};

/// Single float32, on vectors of any width.
template <class Vectors>
struct SingleFloat32 : Vectors, StepByStep {
  using typename Vectors::Vector;
  using Vectors::kLanes;
  using Element = float;
  static constexpr int kPair = 1;
  static constexpr int kExpDegree = 5;

  static PRISM_FORCE_INLINE Vector step(Vector c, Vector a, Vector b) { return Vectors::fma(a, b, c); }
  static PRISM_FORCE_INLINE Vector broadcast(const Element* p) { return Vectors::set(*p); }
  static PRISM_FORCE_INLINE Vector load_step(const Element* p) { return Vectors::load(p); }
  static PRISM_FORCE_INLINE void store_elements(Element* p, Vector low, Vector high) {
    Vectors::store(p, low);
    Vectors::store(p + kLanes, high);
  }
  static PRISM_FORCE_INLINE void store_pairs(Element* p, Vector row, Vector) { Vectors::store(p, row); }
  template <class Storage>
  static PRISM_FORCE_INLINE Vector load_inner(const Storage* p, int64_t count) {
    return Vectors::load_units(p, count);
  }
  static PRISM_FORCE_INLINE void store_inner(Element* p, Vector units, int64_t count) {
    Vectors::store_units(p, units, count);
  }
  template <class Storage>
  static PRISM_FORCE_INLINE Vector interleave(const Storage* row, const Storage*, int64_t count) {
    return Vectors::load_units(row, count);
  }
  template <class Storage>
  static PRISM_FORCE_INLINE void interleave(const Storage* row, const Storage*, Vector (&units)[2]) {
    units[0] = Vectors::load_units(row, kLanes);
    units[1] = Vectors::load_units(row + kLanes, kLanes);
  }
};

}  // namespace prism::simd
