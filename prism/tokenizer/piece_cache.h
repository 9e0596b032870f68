// Remembers the ids of pieces seen before: in running text nearly every piece is one.
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

/// Bounded; not to be shared between threads. Short pieces with few ids lie in a two-way array of cache lines, where
/// the newer overwrite the older, the others in a map that is emptied when full.
class PieceCache {
 public:
  static constexpr size_t kMaxPieceBytes = 256;  ///< longer pieces are not worth remembering

  PieceCache();

  /// Appends the ids of `piece` to `ids` if they are known.
  /// @param readable  bytes that may be read from piece.data() on, at least piece.size().
  bool append(std::string_view piece, size_t readable, std::vector<int32_t>& ids) const;
  void insert(std::string_view piece, const int32_t* ids, size_t count);

 private:
  static constexpr size_t kSetBits = 15, kShortBytes = 15, kShortIds = 4, kMaxLong = 16384;

  struct Key {
    uint64_t low = 0, high = 0;  // up to 15 bytes, zero-padded, and the length in the last byte
    bool operator==(const Key&) const = default;
  };
  struct Slot {
    Key key;
    int32_t ids[kShortIds];  // -1 past the end
  };
  struct alignas(64) Set {
    Slot slots[2];  // the newer first
  };

  static Key short_key(std::string_view piece, size_t readable);
  static size_t set_of(const Key& key);

  std::unique_ptr<Set[]> sets_;
  std::unordered_map<std::string, std::vector<int32_t>> long_;
  mutable std::string long_key_;  // spares the look-up an allocation
};

}  // namespace prism
