// The right side of gemm's products from a packed weight: strips of bfloat16 pairs as they are, others unpacked to
// panels that the threads share.
#pragma once

#include <cstddef>
#include <type_traits>

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

/// Strips of pairs as panels, read in place.
template <class Op>
class StripsInPlace {
  using Element = typename Op::Element;

 public:
  using Order = simd::OneByOne<Op>;

  StripsInPlace(const Matrix& w, const gemm::Cut<Op>&, std::byte*)
      : data_(w.data), bytes_(StripLayout(w.type, w.blocks()).bytes) {}
  static size_t bytes(const Matrix&, const gemm::Cut<Op>&) { return 0; }

  void prepare(const gemm::Range&, const gemm::Range&) {}
  const Element* panel(const gemm::Block<Op>& block, int64_t column) const {
    return reinterpret_cast<const Element*>(data_ + column / kStripRows * bytes_) + block.k * kStripRows;
  }
  Order order() const { return {bytes_ / static_cast<int64_t>(sizeof(Element))}; }

 private:
  const std::byte* data_;
  int64_t bytes_;  ///< of a strip
};

/// Strips that are unpacked to panels (gemm::PackedByCall).
/// The weight's type is none of its template arguments, so that all types share the code of gemm.
/// @tparam Op  as in unpack_strip().
template <class Op>
struct UnpackedStrips {
  using P = simd::Panels<Op>;
  Matrix w;

  void pack(int64_t column, int64_t width, int64_t k, int64_t length, typename Op::Element* to) const {
    constexpr int64_t kUnits = Op::kLanes * Op::kPair;
    const int vectors = P::vectors(width, 0);
    for (int v = 0; v < vectors; ++v) {
      const int64_t row = column + v * Op::kLanes;
      const std::byte* strip = w.data + row / kStripRows * StripLayout(w.type, w.blocks()).bytes;
      with_type(w.type, [&](auto type) {
        unpack_strip<Op, type()>(strip, static_cast<int>(row % kStripRows / Op::kLanes), w.blocks(), k / kBlock,
                                 room(k + length) / kBlock, to + v * kUnits, vectors * kUnits);
      });
    }
  }
  /// Whole blocks are unpacked.
  static int64_t room(int64_t length) { return gemm::round_up(length, kBlock); }
};

/// The product for the rows of a prompt.
/// @tparam Storage  type of x.
/// @tparam InPlace  the strips hold pairs that products take as they are.
template <class Op, class Storage, bool InPlace>
struct PromptProduct {
  using Source = std::conditional_t<InPlace, Matrix, UnpackedStrips<Op>>;
  using Right = std::conditional_t<InPlace, StripsInPlace<Op>, gemm::PackedByCall<Op, Source>>;
  using Multiplication = gemm::Multiplication<Op, Storage, Right>;

  explicit PromptProduct(const Problem& p)
      : problem(problem_of(p)), cut(problem, Multiplication::kWidens, kBlock), source{p.w} {
    if (!InPlace) return;
    // The whole weight is there already.
    cut.columns_packed = gemm::round_up(p.w.rows, simd::Panels<Op>::kWidth);
    cut.inner_packed = gemm::divide_up(p.w.inner, cut.inner_block) * cut.inner_block;
  }
  size_t bytes() const { return Multiplication::bytes(problem, cut, source); }
  void run() const { Multiplication(problem, cut, source).run(); }

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
  Source source;
};

/// Calls f with the product for the weight's type.
template <class Op, class Storage, class F>
auto with_prompt_product(const Problem& p, F&& f) {
  if constexpr (Op::kPair == 2) {
    if (p.w.type == BlockType::bf16) return f(PromptProduct<Op, Storage, true>(p));
  }
  return f(PromptProduct<Op, Storage, false>(p));
}

template <class Op, class Storage>
size_t prompt_scratch(const Problem& p) {
  return with_prompt_product<Op, Storage>(p, [&](const auto& product) { return product.bytes(); });
}

template <class Op, class Storage>
void multiply_prompt(const Problem& p) {
  with_prompt_product<Op, Storage>(p, [&](const auto& product) { product.run(); });
}

}  // namespace prism::packed
