// Splits text into pieces, inside which BPE merges: the `pre_tokenizer` of a `tokenizer.json`.
//
//   const Pretokenizer pretokenizer = Pretokenizer::from_pattern("gpt2");
//   PieceCursor cursor(pretokenizer, text);
//   while (cursor.next(ends)) for (size_t end : ends) ...   // piece i is [ends[i-1], ends[i])
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "prism/tokenizer/split/regex.h"

namespace prism {

/// One split of the text. Each step splits the pieces of the step before.
struct SplitStep {
  enum class Kind { gpt2, llama3, qwen2, digit_runs, single_digits, regex };
  Kind kind = Kind::gpt2;
  std::optional<Regex> regex;  ///< for Kind::regex
};

/// The steps; immutable, so threads can share them. Without steps the text is a single piece.
class Pretokenizer {
 public:
  /// @param json    ByteLevel, Split (Regex or String, Isolated), Digits, or a Sequence of them that ends in ByteLevel.
  /// @param source  name of the file in messages.
  /// @throws InputError naming the unsupported type or option.
  static Pretokenizer from_json(const nlohmann::json& json, const std::string& source);
  /// @param pattern  "gpt2", "llama3", or a regular expression.
  /// @throws InputError if the expression does not compile.
  static Pretokenizer from_pattern(const std::string& pattern);

  /// The `pre_tokenizer` member for the tokenizer.json of from_pattern(pattern).
  static std::string json_for_pattern(const std::string& pattern);

  const std::vector<SplitStep>& steps() const { return steps_; }
  /// The regular expressions and other steps as text, for display and for the fingerprint.
  std::string describe() const;

  /// A position at or after `wanted` where the text can be cut so that the two halves give the same pieces as the whole
  /// text. text.size() if there is none or if it cannot be determined for these patterns.
  size_t safe_cut(std::string_view text, size_t wanted) const;

 private:
  std::vector<SplitStep> steps_;
};

/// Iterates over the pieces of one text, a few thousand at a time.
class PieceCursor {
 public:
  /// @param text  well-formed UTF-8; must outlive the cursor.
  PieceCursor(const Pretokenizer& pretokenizer, std::string_view text, RegexMatcher& matcher);
  PieceCursor(const PieceCursor&) = delete;
  PieceCursor& operator=(const PieceCursor&) = delete;

  /// Replaces `ends` with the ends of the next pieces, as offsets into the text. Returns false at the end of the text.
  bool next(std::vector<size_t>& ends);

 private:
  size_t piece_end(const SplitStep& step, std::string_view text, size_t start);
  size_t regex_piece_end(const Regex& regex, std::string_view text, size_t start);
  void split(size_t step, size_t begin, size_t end, std::vector<size_t>& ends);

  const std::vector<SplitStep>& steps_;
  std::optional<std::string> stand_ins_;  ///< what regular expressions search, if it is not the text itself
  std::string_view text_;
  RegexMatcher& matcher_;
  size_t at_ = 0;
};

}  // namespace prism
