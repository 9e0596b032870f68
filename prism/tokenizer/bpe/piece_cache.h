// Caches the ids of pieces seen before. In running text nearly every piece has been seen.
//
//   if (!cache.append(piece, readable, ids)) { ...; cache.insert(piece, found, count); }
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace prism {

/// Bounded; one per thread. Short pieces with few ids are kept in a two-way associative array of cache lines, where new
/// entries replace old ones. The others are kept in a map that is cleared when full.
class PieceCache {
 public:
  static constexpr size_t kMaxPieceBytes = 256;  ///< longer pieces are not cached

  PieceCache();

  /// Appends the ids of `piece` to `ids` and returns true if they are cached.
  /// @param readable  number of readable bytes from piece.data(), at least piece.size().
  bool append(std::string_view piece, size_t readable, std::vector<int32_t>& ids) const;
  void insert(std::string_view piece, const int32_t* ids, size_t count);

 private:
  static constexpr size_t kSetBits = 15, kShortBytes = 15, kShortIds = 4, kMaxLong = 16384;

  struct Key {
    uint64_t low = 0, high = 0;  // up to 15 bytes, zero-padded; the last byte is the length
    bool operator==(const Key&) const = default;
  };
  struct Slot {
    Key key;
    int32_t ids[kShortIds];  // -1 past the end
  };
  struct alignas(64) Set {
    Slot slots[2];  // newer entry first
  };

  static Key short_key(std::string_view piece, size_t readable);
  static size_t set_of(const Key& key);

  std::unique_ptr<Set[]> sets_;
  std::unordered_map<std::string, std::vector<int32_t>> long_;
  mutable std::string long_key_;  // avoids an allocation per lookup
};

}  // namespace prism
