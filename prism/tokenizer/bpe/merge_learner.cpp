#include "prism/tokenizer/bpe/merge_learner.h"

#include <algorithm>
#include <unordered_set>

#include "prism/tokenizer/bpe/token_pair.h"
#include "prism/tokenizer/byte_alphabet.h"

namespace prism {
namespace {

constexpr uint32_t kEmpty = UINT32_MAX;

size_t hash_pair(uint64_t pair) {
  const uint64_t mixed = pair * 0x9E3779B97F4A7C15u;
  return static_cast<size_t>(mixed ^ (mixed >> 32));
}

}  // namespace

MergeLearner::MergeLearner(const WordCounts& words, const std::vector<std::string>& special_tokens)
    : slots_(1 << 16, kEmpty) {
  for (const auto& token : special_tokens) add_token(token);
  std::array<int32_t, 256> byte_ids{};
  for (const uint8_t byte : bytes_in_alphabet_order()) byte_ids[byte] = add_token(byte_character(byte));

  for (size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words.word(i);
    if (word.size() < 2) continue;
    begins_.push_back(tokens_.size());
    lengths_.push_back(word.size());
    counts_.push_back(words.count(i));
    for (const char byte : word) tokens_.push_back(byte_ids[static_cast<uint8_t>(byte)]);
  }
  for (size_t word = 0; word < begins_.size(); ++word) {
    const int32_t* tokens = tokens_.data() + begins_[word];
    for (size_t i = 0; i + 1 < lengths_[word]; ++i)
      change(pack_pair(tokens[i], tokens[i + 1]), counts_[word], static_cast<uint32_t>(word));
  }
  queue_touched();
}

int32_t MergeLearner::add_token(const std::string& spelling) {
  const auto [row, added] = ids_.emplace(spelling, static_cast<int32_t>(spellings_.size()));
  if (added) spellings_.push_back(spelling);
  return row->second;
}

uint32_t MergeLearner::state_of(Pair pair) {
  size_t slot = hash_pair(pair) & (slots_.size() - 1);
  for (; slots_[slot] != kEmpty; slot = (slot + 1) & (slots_.size() - 1)) {
    if (states_[slots_[slot]].pair == pair) return slots_[slot];
  }
  const auto added = static_cast<uint32_t>(states_.size());
  slots_[slot] = added;
  states_.push_back({pair, 0, {}});
  if (2 * states_.size() > slots_.size()) {
    slots_.assign(2 * slots_.size(), kEmpty);
    for (uint32_t i = 0; i < states_.size(); ++i) {
      size_t free = hash_pair(states_[i].pair) & (slots_.size() - 1);
      while (slots_[free] != kEmpty) free = (free + 1) & (slots_.size() - 1);
      slots_[free] = i;
    }
  }
  return added;
}

void MergeLearner::change(Pair pair, int64_t by, uint32_t word) {
  const uint32_t index = state_of(pair);
  PairState& state = states_[index];
  state.count += by;
  if (by < 0) return;
  if (state.words.empty()) touched_.push_back(index);
  if (state.words.empty() || state.words.back() != word) state.words.push_back(word);
}

void MergeLearner::queue_touched() {
  for (const uint32_t index : touched_) {
    PairState& state = states_[index];
    auto words = std::exchange(state.words, {});
    if (state.count <= 0) continue;
    queue_.push_back({state.count, state.pair, index, std::move(words)});
    std::push_heap(queue_.begin(), queue_.end());
  }
  touched_.clear();
}

bool MergeLearner::step(int64_t min_frequency) {
  while (!queue_.empty()) {
    std::pop_heap(queue_.begin(), queue_.end());
    Queued top = std::move(queue_.back());
    queue_.pop_back();
    // Merging other pairs has made this one rarer since it was queued.
    if (const int64_t count = states_[top.state].count; top.count != count) {
      top.count = count;
      queue_.push_back(std::move(top));
      std::push_heap(queue_.begin(), queue_.end());
      continue;
    }
    if (top.count < std::max<int64_t>(min_frequency, 1)) return false;
    const auto left = static_cast<int32_t>(top.pair >> 32), right = static_cast<int32_t>(top.pair & UINT32_MAX);
    const int32_t joined = add_token(spellings_[static_cast<size_t>(left)] + spellings_[static_cast<size_t>(right)]);
    merges_.push_back({left, right, joined});
    for (const uint32_t word : top.words) join_in_word(word, left, right, joined);
    queue_touched();
    return true;
  }
  return false;
}

void MergeLearner::join_in_word(uint32_t word, int32_t left, int32_t right, int32_t joined) {
  int32_t* tokens = tokens_.data() + begins_[word];
  const size_t length = lengths_[word];
  const int64_t count = counts_[word];
  size_t kept = 0;
  for (size_t i = 0; i < length; ++i) {
    if (tokens[i] != left || i + 1 == length || tokens[i + 1] != right) {
      tokens[kept++] = tokens[i];
      continue;
    }
    // The left neighbour already has its value after this pass, the right one still has its value before it.
    if (kept > 0) {
      change(pack_pair(tokens[kept - 1], left), -count, word);
      change(pack_pair(tokens[kept - 1], joined), count, word);
    }
    if (i + 2 < length) {
      change(pack_pair(right, tokens[i + 2]), -count, word);
      change(pack_pair(joined, tokens[i + 2]), count, word);
    }
    tokens[kept++] = joined;
    ++i;
  }
  lengths_[word] = kept;
}

std::vector<Merge> MergeLearner::merges() const {
  // If two merges produce the same token, a pair with that token can be merged twice. The later position counts.
  std::unordered_set<Pair> seen;
  std::vector<Merge> result;
  for (auto merge = merges_.rbegin(); merge != merges_.rend(); ++merge) {
    if (seen.insert(pack_pair(merge->left, merge->right)).second) result.push_back(*merge);
  }
  std::reverse(result.begin(), result.end());
  return result;
}

}  // namespace prism
