// Counts the pieces of a stream of texts in several threads. Memory grows with the number of distinct pieces, not with
// the length of the stream.
//
//   WordCounts words = count_words(source, pretokenizer, threads, {});
//   for (size_t i = 0; i < words.size(); ++i) use(words.word(i), words.count(i));
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "prism/tokenizer/bpe/train.h"
#include "prism/tokenizer/split/pretokenizer.h"

namespace prism {

/// A hash map from byte strings to counts. All keys are stored in one buffer.
class WordCounts {
 public:
  WordCounts() : slots_(1024, kEmpty) {}

  void add(std::string_view word, int64_t count);
  void add(const WordCounts& others);

  size_t size() const { return entries_.size(); }
  std::string_view word(size_t i) const { return {bytes_.data() + entries_[i].offset, entries_[i].length}; }
  int64_t count(size_t i) const { return entries_[i].count; }

 private:
  static constexpr uint32_t kEmpty = UINT32_MAX;
  struct Entry {
    size_t hash, offset, length;
    int64_t count;
  };

  void grow();

  std::vector<uint32_t> slots_;  // index into entries_; open addressing, a power of two, at most half full
  std::vector<Entry> entries_;
  std::string bytes_;
};

/// Counts the pieces of every text that `source` yields. Bytes that are not UTF-8 are ignored: they become single-byte
/// tokens, so there is nothing to learn from them.
/// @param threads   number of workers; only the calling thread calls `source` and `progress`.
/// @param progress  receives the number of bytes read so far; may be empty.
/// @throws whatever `source` throws.
WordCounts count_words(const TextSupply& source, const Pretokenizer& pretokenizer, int threads,
                       const std::function<void(int64_t)>& progress);

}  // namespace prism
