// The right side of gemm's products from a packed weight: strips of bfloat16 pairs as they are, others unpacked by each
// thread to its second cache, a panel at a time.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstddef>

#include "prism/kernels/gemm/blocks.h"
#include "prism/kernels/packed/packed.h"

namespace prism::packed {

/// Writes blocks `first` to `end` of rows of a strip as a vector of columns of a panel.
/// @tparam Op   an operand type with load_f16() and load_codes().
/// @param half  which of the strip's vectors of kLanes rows.
/// @param step  elements from one step of the panel to the next.
template <class Op, BlockType T>
void unpack_strip(const std::byte* strip, int half, int64_t blocks, int64_t first, int64_t end,
                  typename Op::Element* to, int64_t step) {
  if constexpr (T == BlockType::bf16) {
    const auto* units = reinterpret_cast<const uint16_t*>(strip) + half * Op::kLanes * 2;
    for (int64_t s = first * kBlock / 2; s < end * kBlock / 2; ++s, to += 2 * step) {
      typename Op::Vector pair[2];
      Op::load_pair(units + s * kStripRows * 2, pair);
      Op::store(to, pair[0]);
      Op::store(to + step, pair[1]);
    }
  } else {
    const QuantisedStrip w(strip, T, blocks);
    constexpr int kZero = zero_code(T);
    for (int64_t b = first; b < end; ++b) {
      const int64_t row = b * kStripRows + half * Op::kLanes;
      const auto d = Op::load_f16(w.scales + row);
      const auto m = has_minimum(T) ? Op::load_f16(w.minima + row) : Op::mul(d, Op::set(-kZero));
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) {
        typename Op::Vector values[4];  // four neighbouring columns of W
        Op::template load_codes<T>(w.codes + b * code_bytes(T), w.fifths + b * 8, i, half, values);
#pragma GCC unroll 4
        for (auto& value : values) value = kZero == 0 && !has_minimum(T) ? Op::mul(d, value) : Op::fma(d, value, m);
#pragma GCC unroll 4
        for (int j = 0; j < 4; j += Op::kPair, to += step) Op::store_pairs(to, values[j], values[j + Op::kPair - 1]);
      }
    }
  }
}

/// @tparam Op  as in unpack_strip().
template <class Op, BlockType T>
class Strips {
  using Element = typename Op::Element;
  using P = simd::Panels<Op>;
  using Cut = gemm::Cut<Op>;
  /// Strips of pairs are read in place.
  static constexpr bool kInPlace = T == BlockType::bf16 && Op::kPair == 2;
  static constexpr int64_t kPanels = Op::kLeftRows > 1 ? Op::kGroupPanels : 1;  ///< that a thread unpacks at a time

 public:
  using Order = std::conditional_t<kInPlace, simd::OneByOne<Op>, simd::SideBySide<Op>>;
  static constexpr int64_t kInnerUnit = 32;  ///< blocks of the inner axis are multiples of this

  Strips(const Matrix& w, const Cut& cut, std::byte* memory) : w_(w), bytes_(panel_bytes(cut)), memory_(memory) {}
  static size_t bytes(const gemm::Problem& p, const Matrix&, const Cut& cut) {
    return kInPlace ? 0 : static_cast<size_t>(p.threads) * kPanels * panel_bytes(cut);
  }

  void prepare(const gemm::Range&, const gemm::Range&) {}
  /// Tiles use all panels of a block for each strip of rows, so they are all unpacked first.
  void begin(const gemm::Block<Op>& block) {
    if constexpr (!kInPlace && kPanels > 1)
      for (int64_t i = 0; block.columns.first + i * P::kWidth < block.columns.end; ++i)
        unpack(block, block.columns.first + i * P::kWidth, own_memory() + i * bytes_);
  }
  const Element* panel(const gemm::Block<Op>& block, int64_t column) {
    if constexpr (kInPlace) {
      return reinterpret_cast<const Element*>(strip(column)) + block.k * kStripRows;
    } else if constexpr (kPanels > 1) {
      return reinterpret_cast<const Element*>(own_memory() + (column - block.columns.first) / P::kWidth * bytes_);
    } else {
      unpack(block, column, own_memory());
      return reinterpret_cast<const Element*>(own_memory());
    }
  }
  Order order() const {
    if constexpr (kInPlace) {
      return {StripLayout(T, w_.blocks()).bytes / static_cast<int64_t>(sizeof(Element))};
    } else {
      return {};
    }
  }
  /// Unpacking a panel takes as long as about ten rows of products, so a block has more rows than where B is packed.
  int64_t height(const gemm::Problem& p) const {
    if (kInPlace || kPanels > 1) return Cut::kRows;
    constexpr int64_t kMost = 4 * Cut::kRows;
    const int64_t blocks = std::max<int64_t>(gemm::divide_up(p.rows, kMost), p.rows > Cut::kRows ? 2 : 1);
    return gemm::round_up(gemm::divide_up(p.rows, blocks), Op::kTileRows);
  }

 private:
  static size_t panel_bytes(const Cut& cut) {
    return Cut::template bytes_of<Element>(P::padded_inner(cut.inner_block) * P::kWidth);
  }
  const std::byte* strip(int64_t column) const {
    return w_.data + column / kStripRows * StripLayout(T, w_.blocks()).bytes;
  }
  std::byte* own_memory() const { return memory_ + static_cast<size_t>(omp_get_thread_num()) * kPanels * bytes_; }
  void unpack(const gemm::Block<Op>& block, int64_t column, std::byte* memory) const {
    const int vectors = P::vectors(w_.rows - column, 0);
    const int64_t first = block.k / kBlock, end = gemm::divide_up(block.k + block.length, kBlock);
    constexpr int64_t kUnits = Op::kLanes * Op::kPair;
    for (int v = 0; v < vectors; ++v) {
      const int64_t row = column + v * Op::kLanes;
      unpack_strip<Op, T>(strip(row), static_cast<int>(row % kStripRows / Op::kLanes), w_.blocks(), first, end,
                          reinterpret_cast<Element*>(memory) + v * kUnits, vectors * kUnits);
    }
  }

  const Matrix w_;
  const size_t bytes_;
  std::byte* memory_;
};

/// The product for the rows of a prompt. Op's elements are those of x.
template <class Op, BlockType T>
struct PromptProduct {
  using Storage = typename Op::Element;
  using Right = Strips<Op, T>;
  using Multiplication = gemm::Multiplication<Op, Storage, Right>;

  explicit PromptProduct(const Problem& p) : problem(problem_of(p)), cut(problem, Right::kInnerUnit) {
    // The whole weight is there already.
    cut.columns_packed = gemm::round_up(p.w.rows, simd::Panels<Op>::kWidth);
    cut.inner_packed = gemm::divide_up(p.w.inner, cut.inner_block) * cut.inner_block;
  }
  size_t bytes(const Matrix& w) const { return Multiplication::bytes(problem, cut, w); }
  void run(const Matrix& w) const { Multiplication(problem, cut, w).run(); }

  static gemm::Problem problem_of(const Problem& p) {
    gemm::Problem to;
    to.out_type = p.out_type;
    to.rows = p.rows;
    to.columns = p.w.rows;
    to.inner = p.w.inner;
    to.a = {p.x, p.x_stride, false};
    to.out = p.out;
    to.out_stride = p.out_stride;
    to.bias = p.bias;
    to.relu = p.relu;
    to.scratch = p.scratch;
    to.threads = p.threads;
    return to;
  }

  gemm::Problem problem;
  gemm::Cut<Op> cut;
};

/// Calls f with the product for the weight's type.
template <class Op, class F>
auto with_prompt_product(const Problem& p, F&& f) {
  switch (p.w.type) {
    case BlockType::q4_0:
      return f(PromptProduct<Op, BlockType::q4_0>(p));
    case BlockType::q4_1:
      return f(PromptProduct<Op, BlockType::q4_1>(p));
    case BlockType::q5_0:
      return f(PromptProduct<Op, BlockType::q5_0>(p));
    case BlockType::q5_1:
      return f(PromptProduct<Op, BlockType::q5_1>(p));
    case BlockType::q8_0:
      return f(PromptProduct<Op, BlockType::q8_0>(p));
    default:
      return f(PromptProduct<Op, BlockType::bf16>(p));
  }
}

template <class Op>
size_t prompt_scratch(const Problem& p) {
  return with_prompt_product<Op>(p, [&](const auto& product) { return product.bytes(p.w); });
}

template <class Op>
void multiply_prompt(const Problem& p) {
  with_prompt_product<Op>(p, [&](const auto& product) { product.run(p.w); });
}

}  // namespace prism::packed
