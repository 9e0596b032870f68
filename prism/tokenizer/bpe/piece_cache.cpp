#include "prism/tokenizer/bpe/piece_cache.h"

#include <algorithm>
#include <cstring>

namespace prism {

PieceCache::PieceCache() : sets_(std::make_unique<Set[]>(size_t{1} << kSetBits)) {}

PieceCache::Key PieceCache::short_key(std::string_view piece, size_t readable) {
  Key key;
  if (readable >= 16) {
    std::memcpy(&key, piece.data(), 16);
    const size_t bits = 8 * piece.size();
    if (bits < 64) {
      key.low &= (uint64_t{1} << bits) - 1;
      key.high = 0;
    } else {
      key.high &= (uint64_t{1} << (bits - 64)) - 1;
    }
  } else {
    std::memcpy(&key, piece.data(), piece.size());
  }
  key.high |= uint64_t{piece.size()} << 56;
  return key;
}

size_t PieceCache::set_of(const Key& key) {
  const uint64_t mixed = (key.low * 0x9E3779B97F4A7C15u) ^ (key.high * 0xC2B2AE3D27D4EB4Fu);
  return static_cast<size_t>(((mixed ^ (mixed >> 32)) * 0xD6E8FEB86659FD93u) >> (64 - kSetBits));
}

bool PieceCache::append(std::string_view piece, size_t readable, std::vector<int32_t>& ids) const {
  if (piece.size() <= kShortBytes) {
    const Key key = short_key(piece, readable);
    for (const Slot& slot : sets_[set_of(key)].slots) {
      if (slot.key != key) continue;
      for (const int32_t id : slot.ids) {
        if (id < 0) break;
        ids.push_back(id);
      }
      return true;
    }
  }
  if (long_.empty() || piece.size() > kMaxPieceBytes) return false;
  long_key_.assign(piece);
  const auto row = long_.find(long_key_);
  if (row == long_.end()) return false;
  ids.insert(ids.end(), row->second.begin(), row->second.end());
  return true;
}

void PieceCache::insert(std::string_view piece, const int32_t* ids, size_t count) {
  if (piece.size() > kMaxPieceBytes) return;
  if (piece.size() <= kShortBytes && count <= kShortIds) {
    const Key key = short_key(piece, piece.size());
    Set& set = sets_[set_of(key)];
    set.slots[1] = set.slots[0];
    Slot& slot = set.slots[0];
    slot.key = key;
    std::copy_n(ids, count, slot.ids);
    std::fill(slot.ids + count, slot.ids + kShortIds, -1);
    return;
  }
  if (long_.size() >= kMaxLong) long_.clear();
  long_[std::string(piece)].assign(ids, ids + count);
}

}  // namespace prism
