// Learns a byte-level BPE tokenizer from text.
//
//   BpeTrainOptions options;  options.vocab_size = 16384;
//   Tokenizer tokenizer = train_bpe([&](std::string& text) { return reader.next(text); }, options, threads);
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "prism/tokenizer/tokenizer.h"

namespace prism {

struct BpeTrainOptions {
  int64_t vocab_size = 32768;
  int64_t min_frequency = 2;
  std::vector<std::string> special_tokens = {"<|endoftext|>"};
  std::string pattern = "gpt2";

  template <class Visitor>
  void visit(Visitor& v) {
    v("vocab_size", vocab_size, "tokens in total: special tokens, the 256 bytes, and one per merge");
    v("min_frequency", min_frequency, "pairs that occur less often are not merged; 0 and 1 merge all");
    v("special_tokens", special_tokens,
      "a special token; special tokens get the first ids, and text that spells one is encoded as that token; may be "
      "repeated");
    v("pattern", pattern, "how text is split before merging: gpt2, llama3 or a regular expression");
  }
};

/// Replaces the text with the next document, or with part of one that was cut before the space or spaces between two
/// letters. Returns false at the end.
using TextSupply = std::function<bool(std::string&)>;

struct TrainProgress {
  enum class Phase { read, merge };
  Phase phase = Phase::read;
  int64_t done = 0;   ///< bytes read; or tokens in the vocabulary so far
  int64_t total = 0;  ///< of bytes: 0 if unknown; of tokens: vocab_size
};

/// Starts from single bytes and repeatedly merges the most frequent pair, until the vocabulary is full or no pair
/// occurs min_frequency times. In the latter case the vocabulary is smaller than vocab_size.
///
/// Among equally frequent pairs, the one with the smaller ids (left, then right) is merged first. The result therefore
/// depends only on the text, not on the number of threads or on how `source` orders or groups its documents. It equals
/// that of Hugging Face's BpeTrainer with initial_alphabet=ByteLevel.alphabet() on the same documents.
///
/// Memory: proportional to the number of distinct pieces (words) in the text, plus a few texts of `source`.
///
/// @param threads   number of threads that count words; merging uses one thread.
/// @param progress  called by the calling thread after each text and each merge; may be empty. It may throw.
/// @throws InputError for no text, a vocabulary smaller than 256 + special tokens, special tokens that are empty,
///         duplicate or not UTF-8, or a pattern that does not compile; whatever `source` throws.
Tokenizer train_bpe(const TextSupply& source, const BpeTrainOptions& options, int threads,
                    const std::function<void(const TrainProgress&)>& progress = {});

}  // namespace prism
