// The loop of BPE training: chooses which pairs to merge from the counts of words.
//
//   MergeLearner learner(words, special_tokens);
//   while (learner.size() < vocab_size && learner.step(min_frequency)) {}
//   use(learner.spellings(), learner.merges());
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "prism/tokenizer/bpe/bpe_model.h"
#include "prism/tokenizer/bpe/word_counts.h"

namespace prism {

/// Keeps every word as a list of tokens, the count of every pair, and for every pair the words it was created in.
class MergeLearner {
 public:
  MergeLearner(const WordCounts& words, const std::vector<std::string>& special_tokens);

  /// Merges the most frequent pair. Returns false and does nothing if no pair occurs at least max(min_frequency, 1)
  /// times.
  bool step(int64_t min_frequency);

  /// Number of tokens so far.
  int64_t size() const { return static_cast<int64_t>(spellings_.size()); }
  /// By id: special tokens, bytes in the order of their characters, then merges in the order they were learned.
  const std::vector<std::string>& spellings() const { return spellings_; }
  /// The merges in order, without duplicates.
  std::vector<Merge> merges() const;

 private:
  using Pair = uint64_t;  // left id << 32 | right id, so that pairs compare as (left, right)

  struct PairState {
    Pair pair;
    int64_t count = 0;
    std::vector<uint32_t> words;  // words it was created in since it was last queued; no two neighbours are equal
  };
  struct Queued {
    int64_t count;  // at the time of queueing; counts only fall, so the current one is at most this
    Pair pair;
    uint32_t state;
    std::vector<uint32_t> words;
    bool operator<(const Queued& other) const { return count != other.count ? count < other.count : pair > other.pair; }
  };

  int32_t add_token(const std::string& spelling);
  uint32_t state_of(Pair pair);
  void change(Pair pair, int64_t by, uint32_t word);
  void join_in_word(uint32_t word, int32_t left, int32_t right, int32_t joined);
  void queue_touched();

  std::vector<std::string> spellings_;
  std::unordered_map<std::string, int32_t> ids_;
  std::vector<Merge> merges_;

  std::vector<int32_t> tokens_;  // of all words, concatenated
  std::vector<size_t> begins_;   // start of each word in tokens_
  std::vector<size_t> lengths_;  // of each word; shrink as pairs are merged
  std::vector<int64_t> counts_;

  std::vector<uint32_t> slots_;  // index into states_; open addressing, a power of two, at most half full
  std::vector<PairState> states_;
  std::vector<uint32_t> touched_;  // states whose words are not queued yet
  std::vector<Queued> queue_;      // a heap
};

}  // namespace prism
