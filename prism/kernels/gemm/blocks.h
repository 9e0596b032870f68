// C = A B, cut into blocks that fit the caches.
//
// Threads first pack B into panels, as much at a time as the last-level cache holds. Then each thread computes blocks
// of C: a panel of B stays in the L2 cache while strips of A's rows are multiplied by it in registers. If A's layout
// does not allow reading it in place, each thread packs the rows of its block.
#pragma once

#include <omp.h>

#include <algorithm>
#include <type_traits>

#include "prism/kernels/gemm/gemm.h"
#include "prism/kernels/simd/range.h"
#include "prism/kernels/simd/tile.h"

namespace prism::gemm {

using simd::divide_up;
using simd::Panels;
using simd::Range;
using simd::round_up;

/// Block sizes of a product, and the scratch memory they need.
template <class Op>
struct Cut {
  using Element = typename Op::Element;
  using P = Panels<Op>;
  static constexpr int64_t kPackedBytes = 8 << 20;  ///< bytes of B packed at a time: they fit the last-level cache
  static constexpr int64_t kGroup =
      Op::kGroupPanels * P::kWidth;           ///< columns of a thread's block if it reads A in place
  static constexpr int64_t kRows = 192;       ///< rows of that block: a multiple of kTileRows
  static constexpr int64_t kPackedRows = 96;  ///< rows of a block that packs A: a multiple of kTileRows and kLanes
  /// Products of one sum in registers if A is float32: each rounds at the size that the sum has reached.
  static constexpr int64_t kLongestSum = 384;
  static_assert(kRows % Op::kTileRows == 0 && kPackedRows % Op::kTileRows == 0 && kPackedRows % Op::kLanes == 0);

  bool packs_a;                          ///< true if A is transposed, widened, or its rows do not satisfy LeftRows
  int64_t inner_block;                   ///< inner indices of one pass over C
  int64_t inner_packed, columns_packed;  ///< part of B packed at a time; whole blocks of the inner axis

  /// @param widens  true if A's values are stored in another type than Element.
  /// @param unit    inner blocks are multiples of this; a multiple of 2 kPair.
  Cut(const Problem& p, bool widens, int64_t unit = 2 * Op::kPair)
      : packs_a(widens || p.a.transposed || p.rows % Op::kLeftRows != 0 || p.inner != P::padded_inner(p.inner)) {
    const int64_t fitting = Op::kPanelBytes / (P::kWidth * static_cast<int64_t>(sizeof(Element)));
    const int64_t longest = std::is_same_v<Element, float> && !widens ? std::min(fitting, kLongestSum) : fitting;
    const int64_t most = kPackedBytes / static_cast<int64_t>(sizeof(Element));
    inner_block = P::padded_inner(round_up(divide_up(p.inner, divide_up(p.inner, longest)), unit));
    const int64_t blocks = divide_up(p.inner, inner_block);
    columns_packed = std::min(round_up(p.columns, P::kWidth), most / inner_block / kGroup * kGroup);
    inner_packed = std::clamp(most / columns_packed / inner_block, int64_t{1}, blocks) * inner_block;
  }

  bool needs_sums(const Problem& p) const { return p.out_type != Type::float32 && p.inner > inner_block; }
  size_t sums_bytes(const Problem& p) const { return needs_sums(p) ? bytes_of<float>(p.rows * columns_packed) : 0; }
  /// Bytes for packed rows of A, for one thread.
  size_t a_bytes() const { return packs_a ? bytes_of<Element>(inner_block * kPackedRows) : 0; }

  /// Rounded up to a cache line.
  template <class T>
  static size_t bytes_of(int64_t count) {
    return static_cast<size_t>(round_up(count * static_cast<int64_t>(sizeof(T)), simd::kLineBytes));
  }
};

/// Rows of A packed by a thread: panels of one vector of rows each, step after step. A strip uses some of the lanes.
template <class Op>
struct LanePanels {
  static_assert(Op::kLeftRows == 1, "tiles read whole rows");
  using Element = typename Op::Element;
  using P = simd::Panels<Op>;

  /// @param source  stores the rows one after the other.
  template <class Storage>
  static void pack(const Storage* source, int64_t stride, int64_t rows, int64_t inner, Element* packed) {
    simd::pack_transposed<Op, 1>(source, stride, rows, inner, packed);
  }
  /// @param source  stores the columns one after the other.
  template <class Storage>
  static void pack_columns(const Storage* source, int64_t stride, int64_t rows, int64_t inner, Element* packed) {
    constexpr int64_t kAhead = 16;  // steps: each is on another page, which hardware prefetchers do not predict
    const int64_t steps = P::steps(inner);
    for (int64_t s = 0; s < steps; ++s) {
      const Storage* even = source + s * Op::kPair * stride;
      const Storage* odd = s * Op::kPair + 1 < inner ? even + stride : nullptr;
      const bool fetches = (s + kAhead) * Op::kPair + 1 < inner;
      for (int64_t row = 0; row < rows; row += Op::kLanes) {
        if (fetches && row % (2 * Op::kLanes) == 0)
          for (int i = 0; i < Op::kPair; ++i) __builtin_prefetch(even + (kAhead * Op::kPair + i) * stride + row);
        Element* to = packed + (row / Op::kLanes * steps + s) * Op::kLanes * Op::kPair;
        Op::store(reinterpret_cast<float*>(to),
                  Op::interleave(even + row, odd == nullptr ? nullptr : odd + row, rows - row));
      }
    }
  }

  /// Rows of a strip: a panel's, divided evenly, because the sums of a strip of two rows would wait for each other.
  static constexpr int64_t kEvenRows = divide_up(Op::kLanes, divide_up(Op::kLanes, Op::kTileRows));
  /// Number of rows of the strip that starts at `row`.
  static int64_t strip(int64_t row) { return std::min(kEvenRows, Op::kLanes - row % Op::kLanes); }
  static simd::LeftRows<Op> rows(const Element* packed, int64_t inner, int64_t row) {
    const int64_t lane = row % Op::kLanes;
    return {packed + P::offset(inner, row - lane) + lane * Op::kPair, Op::kPair, Op::kLanes * Op::kPair};
  }
};

/// The same if strips are AMX tiles: rows one after the other, padded as LeftRows requires.
template <class Op>
struct WholeRows {
  using Element = typename Op::Element;
  using P = simd::Panels<Op>;

  template <class Storage>
  static void pack(const Storage* source, int64_t stride, int64_t rows, int64_t inner, Element* packed) {
    simd::copy_rows<Op>(source, stride, rows, inner, packed);
  }
  template <class Storage>
  static void pack_columns(const Storage* source, int64_t stride, int64_t rows, int64_t inner, Element* packed) {
    const int64_t length = P::padded_inner(inner);
    simd::transpose_rows<Op>(source, stride, inner, rows, length, packed, length);
  }

  static int64_t strip(int64_t) { return Op::kTileRows; }
  static simd::LeftRows<Op> rows(const Element* packed, int64_t inner, int64_t row) {
    const int64_t length = P::padded_inner(inner);
    return {packed + row * length, length};
  }
};

template <class Op>
using PackedRows = std::conditional_t<(Op::kLeftRows > 1), WholeRows<Op>, LanePanels<Op>>;

/// The unit of work of a thread: part of C's rows and columns, over one block of the inner axis.
template <class Op>
struct Block {
  Range rows, columns;
  int64_t first_column;         ///< first column of the packed part of B
  int64_t k, packed_k, length;  ///< inner indices: their start in the matrices, in the packed part; their number
  const typename Op::Element* packed_rows;  ///< rows of A packed by this thread; null: A is read in place
};

/// The element at a row and a column.
template <class Storage>
PRISM_FORCE_INLINE const Storage* element(const Matrix& m, int64_t row, int64_t column) {
  const auto* data = static_cast<const Storage*>(m.data);
  return m.transposed ? data + column * m.stride + row : data + row * m.stride + column;
}

/// B as it is given.
template <class Op, class Storage>
struct GivenB {
  using P = Panels<Op>;
  Matrix b;

  /// Packs `length` inner indices from `k` on of `width` columns, at most a panel's.
  void pack(int64_t column, int64_t width, int64_t k, int64_t length, typename Op::Element* to) const {
    const Storage* source = element<Storage>(b, k, column);
    b.transposed ? simd::pack_transposed<Op>(source, b.stride, width, length, to)
                 : simd::pack_rows<Op>(source, b.stride, length, width, to);
  }
  /// Inner indices for which pack() needs room.
  static int64_t room(int64_t length) { return length; }
};

/// The right side of a product whose panels the threads pack together, as many at a time as the last-level cache holds.
/// @tparam Source  packs parts of B; see GivenB.
template <class Op, class Source>
class PackedByCall {
  using Element = typename Op::Element;
  using P = Panels<Op>;

 public:
  using Order = simd::SideBySide<Op>;

  /// @param memory  bytes() bytes.
  PackedByCall(const Source& source, const Cut<Op>& cut, std::byte* memory)
      : source_(source), cut_(cut), packed_(reinterpret_cast<Element*>(memory)) {}
  static size_t bytes(const Source&, const Cut<Op>& cut) {
    return Cut<Op>::template bytes_of<Element>(cut.inner_packed * cut.columns_packed);
  }

  /// Packs a part of B. All threads call it.
  void prepare(const Range& columns, const Range& inner) {
    const int64_t panels = divide_up(columns.size(), P::kWidth), blocks = divide_up(inner.size(), cut_.inner_block);
#pragma omp for schedule(dynamic)
    for (int64_t i = 0; i < panels * blocks; ++i) {
      const int64_t k = i / panels * cut_.inner_block, length = std::min(inner.size() - k, cut_.inner_block);
      const int64_t offset = i % panels * P::kWidth, width = std::min(columns.size() - offset, P::kWidth);
      source_.pack(columns.first + offset, width, inner.first + k, length, place(k, length, offset));
    }
  }
  /// The panel of a block that starts at `column`.
  const Element* panel(const Block<Op>& block, int64_t column) const {
    return place(block.packed_k, block.length, column - block.first_column);
  }
  Order order() const {
    return {};
  }

 private:
  Element* place(int64_t k, int64_t length, int64_t offset) const {
    return packed_ + k * cut_.columns_packed + P::offset(Source::room(length), offset);
  }

  const Source source_;
  const Cut<Op>& cut_;
  Element* packed_;
};

/// @tparam Right  the right side of the product; see PackedByCall.
template <class Op, class Storage, class Right = PackedByCall<Op, GivenB<Op, Storage>>>
class Multiplication {
  using Element = typename Op::Element;
  using P = Panels<Op>;
  using C = Cut<Op>;
  using Block = gemm::Block<Op>;

 public:
  static constexpr bool kWidens = !std::is_same_v<Storage, Element>;

  explicit Multiplication(const Problem& p) : Multiplication(p, C(p, kWidens), GivenB<Op, Storage>{p.b}) {}
  /// @param b  what Right is made from.
  template <class Source>
  Multiplication(const Problem& p, const C& cut, const Source& b)
      : p_(p),
        cut_(cut),
        right_(b, cut_, p.scratch),
        sums_(reinterpret_cast<float*>(p.scratch + Right::bytes(b, cut))),
        a_(p.scratch + Right::bytes(b, cut) + cut.sums_bytes(p)) {}

  /// Bytes of scratch memory.
  static size_t bytes(const Problem& p) { return bytes(p, C(p, kWidens), GivenB<Op, Storage>{p.b}); }
  template <class Source>
  static size_t bytes(const Problem& p, const C& cut, const Source& b) {
    return Right::bytes(b, cut) + cut.sums_bytes(p) + static_cast<size_t>(p.threads) * cut.a_bytes();
  }

  void run() {
#pragma omp parallel num_threads(p_.threads)
    {
      [[maybe_unused]] const typename Op::Session session;
      for (int64_t column = 0; column < p_.columns; column += cut_.columns_packed) {
        for (int64_t k = 0; k < p_.inner; k += cut_.inner_packed) {
          const Range columns{column, std::min(p_.columns, column + cut_.columns_packed)};
          const Range inner{k, std::min(p_.inner, k + cut_.inner_packed)};
          right_.prepare(columns, inner);
          multiply_all(columns, inner);
        }
      }
    }
  }

 private:
  /// Packs rows of A over `length` inner indices from k on into the calling thread's memory.
  const Element* pack_a(const Range& rows, int64_t k, int64_t length) {
    auto* packed = reinterpret_cast<Element*>(a_ + static_cast<size_t>(omp_get_thread_num()) * cut_.a_bytes());
    const Storage* source = element<Storage>(p_.a, rows.first, k);
    p_.a.transposed ? PackedRows<Op>::pack_columns(source, p_.a.stride, rows.size(), length, packed)
                    : PackedRows<Op>::pack(source, p_.a.stride, rows.size(), length, packed);
    return packed;
  }

  void multiply_all(const Range& columns, const Range& inner) {
    // Packed rows are used for all columns, rows in place for those of a group, or for as many as still leave enough
    // work for every thread. Rows in place cost nothing when there are more jobs.
    const int64_t enough = (cut_.packs_a ? 4 : 8) * p_.threads, height = cut_.packs_a ? C::kPackedRows : C::kRows;
    const int64_t heights = divide_up(p_.rows, height);
    const int64_t least = cut_.packs_a ? 1 : divide_up(columns.size(), C::kGroup);
    const int64_t most = std::max(least, divide_up(enough, heights));
    const int64_t group = round_up(divide_up(columns.size(), most), P::kWidth);
    const int64_t groups = divide_up(columns.size(), group);
    const int64_t jobs = heights * groups;
#pragma omp for schedule(dynamic)
    for (int64_t i = 0; i < jobs; ++i) {
      const int64_t row = i / groups * height, column = columns.first + i % groups * group;
      const Range rows{row, std::min(p_.rows, row + height)};
      for (int64_t k = 0; k < inner.size(); k += cut_.inner_block) {
        const int64_t length = std::min(inner.size() - k, cut_.inner_block);
        multiply_block({rows,
                        {column, std::min(columns.end, column + group)},
                        columns.first,
                        inner.first + k,
                        k,
                        length,
                        cut_.packs_a ? pack_a(rows, inner.first + k, length) : nullptr});
      }
    }
  }

  /// Goes through all strips for each panel, which stays in the cache. If a tile of sums is as wide as a cache line of
  /// C, goes through all panels for each strip instead, so that C is written row by row.
  void multiply_block(const Block& block) {
    if constexpr (Op::kLeftRows > 1) {
      for (int64_t row = block.rows.first; row < block.rows.end; row += Op::kTileRows)
        for (int64_t column = block.columns.first; column < block.columns.end; column += P::kWidth)
          multiply_strip(block, right_.panel(block, column), column, row);
    } else {
      for (int64_t column = block.columns.first; column < block.columns.end; column += P::kWidth) {
        const Element* panel = right_.panel(block, column);
        for (int64_t row = block.rows.first; row < block.rows.end;) row += multiply_strip(block, panel, column, row);
      }
    }
  }

  simd::LeftRows<Op> left_rows(const Block& block, int64_t row) const {
    if constexpr (!kWidens) {
      if (block.packed_rows == nullptr) return {element<Storage>(p_.a, row, block.k), p_.a.stride};
    }
    return PackedRows<Op>::rows(block.packed_rows, block.length, row - block.rows.first);
  }

  /// The bias of up to `left` columns from `column` on.
  PRISM_FORCE_INLINE typename Op::Vector bias(int64_t column, int64_t left) const {
    return p_.bias == nullptr ? Op::zero() : Op::load_units(p_.bias + column, left);
  }
  PRISM_FORCE_INLINE typename Op::Vector activate(typename Op::Vector x) const {
    return p_.relu ? Op::max(Op::zero(), x) : x;  // x is the second operand, so that a NaN stays
  }

  /// Multiplies the strip of A that starts at `row` by one panel of B. @return  the number of rows of the strip.
  PRISM_FORCE_INLINE int64_t multiply_strip(const Block& block, const Element* panel, int64_t column, int64_t row) {
    const int64_t most = block.packed_rows == nullptr ? Op::kTileRows : PackedRows<Op>::strip(row - block.rows.first);
    const int count = static_cast<int>(std::min(most, block.rows.end - row));
    const int64_t offset = column - block.first_column, left = block.columns.end - column;
    const bool joins = block.k > 0 || p_.accumulate;
    const bool single = p_.out_type == Type::float32, ends = block.k + block.length == p_.inner;
    const bool rounds = !single && ends, finishes = single && ends && (p_.bias != nullptr || p_.relu);
    // Sums between blocks of the inner axis are kept in C itself if it is float32.
    const int64_t stride = single ? p_.out_stride : cut_.columns_packed;
    float* sums = single ? static_cast<float*>(p_.out) + row * stride + column : sums_ + row * stride + offset;
    auto* rounded = static_cast<uint16_t*>(p_.out) + row * p_.out_stride + column;
    for (int r = 0; r < count; ++r)
      for (int64_t i = 0; i < std::min(left, P::kWidth); i += Op::kLanes) {
        const void* line = rounds ? static_cast<const void*>(rounded + r * p_.out_stride + i) : sums + r * stride + i;
        __builtin_prefetch(line, 1);  // to be in the cache when the products are done
      }
    const simd::LeftRows<Op> left_side = left_rows(block, row);
    if constexpr (Op::kLeftRows > 1) {
      if (count == Op::kTileRows && left >= P::kWidth && !finishes) {
        const float* before = joins ? sums : nullptr;
        if (!rounds) {
          Op::multiply_into(left_side, Op::kTileRows, panel, right_.order(), Op::kTileColumns, P::steps(block.length),
                            before, stride, sums, stride);
          return count;
        }
        alignas(64) float whole[Op::kTileRows * P::kWidth];
        Op::multiply_into(left_side, Op::kTileRows, panel, right_.order(), Op::kTileColumns, P::steps(block.length),
                          before, stride, whole, P::kWidth);
        const auto low_bias = bias(column, left), high_bias = bias(column + Op::kLanes, left - Op::kLanes);
        for (int r = 0; r < Op::kTileRows; ++r) {
          const float* from = whole + r * P::kWidth;
          Op::store_elements(rounded + r * p_.out_stride, activate(Op::add(Op::load(from), low_bias)),
                             activate(Op::add(Op::load(from + Op::kLanes), high_bias)));
        }
        return count;
      }
    }
    const auto before = [&](int r, int v) PRISM_INLINE_LAMBDA {
      const int64_t i = v * Op::kLanes;
      return Op::load_units(sums + r * stride + i, left - i);
    };
    const auto finish = [&](int r, int v, auto sum) PRISM_INLINE_LAMBDA {
      const int64_t i = v * Op::kLanes;
      if (rounds || finishes) sum = activate(Op::add(sum, bias(column + i, left - i)));
      if (rounds) {
        Op::store_units(rounded + r * p_.out_stride + i, sum, left - i);
      } else {
        Op::store_units(sums + r * stride + i, sum, left - i);
      }
    };
    const int vectors = P::vectors(left, 0);
    if constexpr (Op::kLeftRows > 1) {
      // Tiles add to the sums before, as above: the order of a row's sum does not depend on the rows of its strip.
      alignas(64) float tile[Op::kTileRows * P::kWidth] = {};
      const auto place = [&](int r, int v) { return tile + r * P::kWidth + v * Op::kLanes; };
      for (int r = 0; joins && r < count; ++r)
        for (int v = 0; v < vectors; ++v) Op::store(place(r, v), before(r, v));
      Op::multiply_into(left_side, count, panel, right_.order(), vectors, P::steps(block.length), tile, P::kWidth, tile,
                        P::kWidth);
      for (int r = 0; r < count; ++r)
        for (int v = 0; v < vectors; ++v) finish(r, v, Op::load(place(r, v)));
    } else {
      const auto add = [&](int r, int v, auto sum)
                           PRISM_INLINE_LAMBDA { finish(r, v, joins ? Op::add(sum, before(r, v)) : sum); };
      simd::multiply<Op>(left_side, count, panel, vectors, P::steps(block.length), add, right_.order());
    }
    return count;
  }

  const Problem& p_;
  const C cut_;
  Right right_;
  float* sums_;
  std::byte* a_;
};

}  // namespace prism::gemm
