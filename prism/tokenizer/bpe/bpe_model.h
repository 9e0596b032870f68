// The merge rules of byte-pair encoding, applied to one piece of text.
//
//   BpeModel model(byte_ids, merges);
//   model.encode(piece, scratch, ids);     // appends
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace prism {

/// Replaces the pair (left, right) by `result`. Rules earlier in the list have priority.
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
  /// @param byte_ids  the token of each single byte.
  /// @param merges    in order of rank; if two rules have the same pair, the later one counts.
  BpeModel(const std::array<int32_t, 256>& byte_ids, const std::vector<Merge>& merges);

  /// Appends the ids of `piece`. Time: quadratic in the length up to 64 bytes, O(n log n) above.
  /// @throws InputError for a piece of 2 GiB or more.
  void encode(std::string_view piece, BpeScratch& scratch, std::vector<int32_t>& ids) const;

  int32_t byte_id(uint8_t byte) const { return byte_ids_[byte]; }

 private:
  static constexpr uint32_t kNoRank = UINT32_MAX;
  struct Rule {
    uint64_t pair = UINT64_MAX;  // left << 32 | right
    uint32_t rank = kNoRank;
    int32_t result = -1;
  };

  const Rule& find(int32_t left, int32_t right) const;
  void encode_short(std::string_view piece, std::vector<int32_t>& ids) const;
  void encode_long(std::string_view piece, BpeScratch& scratch, std::vector<int32_t>& ids) const;

  std::array<int32_t, 256> byte_ids_{};
  std::vector<Rule> rules_{Rule{}};  // open addressing, a power of two, at most half full
  int shift_ = 63;
};

}  // namespace prism
