// The merge rules of byte-pair encoding, applied to one piece of text.
//
//   BpeModel model(merges);
//   model.encode(symbols, scratch, ids);     // appends
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace prism {

/// Replaces the pair (left, right) by `result`.
struct Merge {
  int32_t left, right, result;
};

/// Working memory of encode(), reused between calls; one per thread.
struct BpeScratch {
  std::vector<int32_t> ids, next, previous;
  std::vector<uint32_t> ranks;
  std::vector<uint64_t> heap;
};

/// Repeatedly applies the rule of lowest rank that matches a pair in the piece, leftmost first.
class BpeModel {
 public:
  BpeModel() = default;
  /// @param merges  if two rules have the same pair, the later one counts.
  /// @param ranks   of each merge, the lowest first; merges may share a rank. Empty: a merge's rank is its place.
  explicit BpeModel(std::span<const Merge> merges, std::span<const uint32_t> ranks = {});

  /// Appends the ids that the tokens of single bytes or characters, in the order of the text, are merged into. Time:
  /// quadratic in the length up to 64 symbols, O(n log n) above.
  /// @throws InputError for 2^31 symbols or more.
  void encode(std::span<const int32_t> symbols, BpeScratch& scratch, std::vector<int32_t>& ids) const;

 private:
  static constexpr uint32_t kNoRank = UINT32_MAX;
  struct Rule {
    uint64_t pair = UINT64_MAX;  // left << 32 | right
    uint32_t rank = kNoRank;
    int32_t result = -1;
  };

  const Rule& find(int32_t left, int32_t right) const;
  void encode_short(std::span<const int32_t> symbols, std::vector<int32_t>& ids) const;
  void encode_long(std::span<const int32_t> symbols, BpeScratch& scratch, std::vector<int32_t>& ids) const;

  std::vector<Rule> rules_{Rule{}};  // open addressing, a power of two, at most half full
  int shift_ = 63;
};

}  // namespace prism
