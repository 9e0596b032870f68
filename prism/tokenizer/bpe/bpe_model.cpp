// v1: short pieces keep the rank of every pair in an array and search its minimum after each merge; long pieces use a
// heap over a linked list. The array is faster up to about a hundred symbols, and nearly all pieces are shorter.
#include "prism/tokenizer/bpe/bpe_model.h"

#include <algorithm>
#include <functional>

#include "prism/core/error.h"
#include "prism/tokenizer/bpe/token_pair.h"

namespace prism {
namespace {

constexpr size_t kShortSymbols = 64;

size_t hash_pair(uint64_t pair, int shift) {
  return static_cast<size_t>(((pair ^ (pair >> 29)) * 0x9E3779B97F4A7C15u) >> shift);
}

}  // namespace

BpeModel::BpeModel(std::span<const Merge> merges, std::span<const uint32_t> ranks) {
  int bits = 1;
  while ((size_t{1} << bits) < 2 * merges.size() + 2) ++bits;
  shift_ = 64 - bits;
  rules_.assign(size_t{1} << bits, Rule{});
  for (size_t place = 0; place < merges.size(); ++place) {
    const auto& merge = merges[place];
    const uint64_t pair = pack_pair(merge.left, merge.right);
    size_t slot = hash_pair(pair, shift_);
    while (rules_[slot].pair != UINT64_MAX && rules_[slot].pair != pair) slot = (slot + 1) & (rules_.size() - 1);
    rules_[slot] = {pair, ranks.empty() ? static_cast<uint32_t>(place) : ranks[place], merge.result};
  }
}

const BpeModel::Rule& BpeModel::find(int32_t left, int32_t right) const {
  const uint64_t pair = pack_pair(left, right);
  size_t slot = hash_pair(pair, shift_);
  while (rules_[slot].pair != pair && rules_[slot].pair != UINT64_MAX) slot = (slot + 1) & (rules_.size() - 1);
  return rules_[slot];  // an empty slot has kNoRank
}

void BpeModel::encode(std::span<const int32_t> symbols, BpeScratch& scratch, std::vector<int32_t>& ids) const {
  if (symbols.size() <= kShortSymbols) {
    encode_short(symbols, ids);
  } else {
    encode_long(symbols, scratch, ids);
  }
}

void BpeModel::encode_short(std::span<const int32_t> symbols, std::vector<int32_t>& ids) const {
  int32_t tokens[kShortSymbols];
  int32_t results[kShortSymbols];  // result of merging token i with the next one
  uint32_t ranks[kShortSymbols];   // rank of that merge
  size_t count = symbols.size();
  std::copy(symbols.begin(), symbols.end(), tokens);
  const auto look_up = [&](size_t i) {
    const Rule& rule = find(tokens[i], tokens[i + 1]);
    ranks[i] = rule.rank;
    results[i] = rule.result;
  };
  for (size_t i = 0; i + 1 < count; ++i) look_up(i);
  while (count > 1) {
    const size_t best = static_cast<size_t>(std::min_element(ranks, ranks + count - 1) - ranks);
    if (ranks[best] == kNoRank) break;
    tokens[best] = results[best];
    std::copy(tokens + best + 2, tokens + count, tokens + best + 1);
    if (best + 2 < count) {
      std::copy(ranks + best + 2, ranks + count - 1, ranks + best + 1);
      std::copy(results + best + 2, results + count - 1, results + best + 1);
    }
    --count;
    if (best + 1 < count) look_up(best);
    if (best > 0) look_up(best - 1);
  }
  ids.insert(ids.end(), tokens, tokens + count);
}

void BpeModel::encode_long(std::span<const int32_t> symbols, BpeScratch& scratch, std::vector<int32_t>& ids) const {
  PRISM_CHECK(symbols.size() <= INT32_MAX, "tokenizer",
              "expected pieces of text below 2^31 symbols; found one of {}; cut the text.", symbols.size());
  // Position i holds the token that starts at symbol i, until it has been merged into its left neighbour. ranks[i] is
  // the rank of merging it with the next token. A heap entry is valid while it agrees with ranks.
  const auto size = static_cast<int32_t>(symbols.size());
  scratch.ids.resize(symbols.size());
  scratch.next.resize(symbols.size());
  scratch.previous.resize(symbols.size());
  scratch.ranks.resize(symbols.size());
  scratch.heap.clear();
  const auto at = [](std::vector<int32_t>& values, int32_t i) -> int32_t& { return values[static_cast<size_t>(i)]; };
  const auto look_up = [&](int32_t i) {
    uint32_t& rank = scratch.ranks[static_cast<size_t>(i)];
    const int32_t right = at(scratch.next, i);
    rank = right < size ? find(at(scratch.ids, i), at(scratch.ids, right)).rank : kNoRank;
    return rank == kNoRank ? UINT64_MAX : uint64_t{rank} << 32 | static_cast<uint32_t>(i);
  };
  for (int32_t i = 0; i < size; ++i) {
    at(scratch.ids, i) = symbols[static_cast<size_t>(i)];
    at(scratch.next, i) = i + 1;
    at(scratch.previous, i) = i - 1;
  }
  const std::greater<> later;
  for (int32_t i = 0; i < size; ++i) {
    if (const uint64_t entry = look_up(i); entry != UINT64_MAX) scratch.heap.push_back(entry);
  }
  std::make_heap(scratch.heap.begin(), scratch.heap.end(), later);
  const auto push = [&](int32_t i) {
    const uint64_t entry = look_up(i);
    if (entry == UINT64_MAX) return;
    scratch.heap.push_back(entry);
    std::push_heap(scratch.heap.begin(), scratch.heap.end(), later);
  };
  while (!scratch.heap.empty()) {
    std::pop_heap(scratch.heap.begin(), scratch.heap.end(), later);
    const uint64_t entry = scratch.heap.back();
    scratch.heap.pop_back();
    const auto left = static_cast<int32_t>(entry & UINT32_MAX);
    if (scratch.ranks[static_cast<size_t>(left)] != entry >> 32) continue;
    const int32_t right = at(scratch.next, left), after = at(scratch.next, right);
    at(scratch.ids, left) = find(at(scratch.ids, left), at(scratch.ids, right)).result;
    scratch.ranks[static_cast<size_t>(right)] = kNoRank;
    at(scratch.next, left) = after;
    if (after < size) at(scratch.previous, after) = left;
    push(left);
    if (const int32_t before = at(scratch.previous, left); before >= 0) push(before);
  }
  for (int32_t i = 0; i < size; i = at(scratch.next, i)) ids.push_back(at(scratch.ids, i));
}

}  // namespace prism
