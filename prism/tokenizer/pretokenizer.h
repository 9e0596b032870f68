// Cuts text into the pieces inside which BPE merges: the `pre_tokenizer` of a `tokenizer.json`.
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

#include "prism/tokenizer/regex.h"

namespace prism {

/// One cut of the text; the next step works inside the pieces of the one before.
struct SplitStep {
  enum class Kind { gpt2, llama3, qwen2, digit_runs, single_digits, regex };
  Kind kind = Kind::gpt2;
  std::optional<Regex> regex;  ///< for Kind::regex
};

/// The steps; immutable, shared by threads. No step at all leaves the text in one piece.
class Pretokenizer {
 public:
  /// @param json    ByteLevel, Split (Regex or String, Isolated), Digits, or a Sequence of them that ends in ByteLevel.
  /// @param source  what messages call the file.
  /// @throws InputError naming the kind or option that is not supported.
  static Pretokenizer from_json(const nlohmann::json& json, const std::string& source);
  /// @param pattern  "gpt2", "llama3", or a regular expression.
  /// @throws InputError if the expression does not compile.
  static Pretokenizer from_pattern(const std::string& pattern);

  /// The `pre_tokenizer` member of the file that from_pattern(pattern) belongs into.
  static std::string json_for_pattern(const std::string& pattern);

  const std::vector<SplitStep>& steps() const { return steps_; }
  /// Regular expressions and other steps in words, for showing and for the fingerprint.
  std::string describe() const;

  /// A place at or after `wanted` where the text can be cut so that both halves give the pieces of the whole;
  /// text.size() if there is none, or if the patterns are not known well enough to say.
  size_t safe_cut(std::string_view text, size_t wanted) const;

 private:
  std::vector<SplitStep> steps_;
};

/// Walks over the pieces of one text, a few thousand at a time.
class PieceCursor {
 public:
  /// @param text  well-formed UTF-8, alive as long as the cursor.
  PieceCursor(const Pretokenizer& pretokenizer, std::string_view text, RegexMatcher& matcher)
      : steps_(pretokenizer.steps()), text_(text), matcher_(matcher) {}

  /// Replaces `ends` by the ends of the next pieces, as offsets into the text. False when the text is used up.
  bool next(std::vector<size_t>& ends);

 private:
  size_t piece_end(const SplitStep& step, std::string_view text, size_t start);
  size_t regex_piece_end(const Regex& regex, std::string_view text, size_t start);
  void split(size_t step, size_t begin, size_t end, std::vector<size_t>& ends);

  const std::vector<SplitStep>& steps_;
  std::string_view text_;
  RegexMatcher& matcher_;
  size_t at_ = 0;
};

}  // namespace prism
