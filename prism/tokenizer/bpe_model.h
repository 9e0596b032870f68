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

/// The pair (left, right) becomes `result`; rules that stand earlier in the list come first.
struct Merge {
  int32_t left, right, result;
};

/// Working memory of encode(), kept between calls; not to be shared between threads.
struct BpeScratch {
  std::vector<int32_t> ids, next, previous;
  std::vector<uint32_t> ranks;
  std::vector<uint64_t> heap;
};

/// Applies, again and again, the rule of lowest rank whose pair stands in the piece, leftmost first.
class BpeModel {
 public:
  BpeModel() = default;
  /// @param byte_ids  the token of every single byte.
  /// @param merges    by rank; the later of two rules for one pair holds.
  BpeModel(const std::array<int32_t, 256>& byte_ids, const std::vector<Merge>& merges);

  /// Appends the ids of `piece`. Time: square of the length up to 64 bytes, n log n above.
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
