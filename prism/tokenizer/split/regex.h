// A regular expression over UTF-8 (PCRE2 with Unicode properties, compiled to machine code if the library supports it).
//
//   const Regex words(R"(\p{L}+)", "pattern");
//   RegexMatcher matcher;                        // one per thread
//   if (auto match = matcher.search(words, text, 0)) use(match->begin, match->end);
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct pcre2_real_code_8;
struct pcre2_real_match_context_8;
struct pcre2_real_match_data_8;
struct pcre2_real_jit_stack_8;

namespace prism {

/// A compiled pattern; threads can share it. Its classes are PCRE2's: see split/stand_ins.h. `^` and `$` match at every
/// line, as in Hugging Face's library.
class Regex {
 public:
  /// @param source  name of the pattern's origin in messages.
  /// @throws InputError with PCRE2's reason and the offset of the fault.
  Regex(const std::string& pattern, std::string_view source);

  const std::string& pattern() const { return pattern_; }
  /// Whether to search texts with_stand_ins(): true unless the pattern itself has a character that would be replaced.
  bool wants_stand_ins() const { return wants_stand_ins_; }

 private:
  friend class RegexMatcher;
  std::string pattern_;
  bool wants_stand_ins_;
  std::shared_ptr<pcre2_real_code_8> code_;
};

/// The working memory of a search; one per thread.
class RegexMatcher {
 public:
  struct Match {
    size_t begin, end;
  };

  RegexMatcher();
  ~RegexMatcher();
  RegexMatcher(const RegexMatcher&) = delete;
  RegexMatcher& operator=(const RegexMatcher&) = delete;

  /// The first match at or after `start`. The text must be well-formed UTF-8.
  /// @throws InputError if the pattern needs more backtracking than PCRE2 allows.
  std::optional<Match> search(const Regex& regex, std::string_view text, size_t start);

 private:
  pcre2_real_match_data_8* data_;
  pcre2_real_match_context_8* context_;
  pcre2_real_jit_stack_8* stack_;
};

}  // namespace prism
