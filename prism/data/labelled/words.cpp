#define PCRE2_CODE_UNIT_WIDTH 8
#include "prism/data/labelled/words.h"

#include <pcre2.h>

#include "prism/core/error.h"

namespace prism {
namespace {

using Code = std::unique_ptr<pcre2_code, decltype(&pcre2_code_free)>;

PCRE2_SPTR bytes(std::string_view text) {
  return reinterpret_cast<PCRE2_SPTR>(text.data());
}

Code compile(std::string_view pattern) {
  int error = 0;
  size_t at = 0;
  Code code(pcre2_compile(bytes(pattern), pattern.size(), PCRE2_UTF | PCRE2_UCP, &error, &at, nullptr),
            pcre2_code_free);
  PRISM_ASSERT(code != nullptr, "words", "the pattern {} fails at {}", pattern, at);
  return code;
}

/// `text` with every match of `code` replaced.
std::string substituted(const pcre2_code* code, std::string_view text, std::string_view replacement) {
  std::string out(2 * text.size() + 64, '\0');
  for (;;) {
    size_t size = out.size();
    const int result = pcre2_substitute(
        code, bytes(text), text.size(), 0,
        PCRE2_SUBSTITUTE_GLOBAL | PCRE2_SUBSTITUTE_EXTENDED | PCRE2_SUBSTITUTE_OVERFLOW_LENGTH, nullptr, nullptr,
        bytes(replacement), replacement.size(), reinterpret_cast<PCRE2_UCHAR*>(out.data()), &size);
    if (result == PCRE2_ERROR_NOMEMORY) {
      out.resize(size);
      continue;
    }
    PRISM_ASSERT(result >= 0, "words", "PCRE2 error {}", result);
    out.resize(size);
    return out;
  }
}

}  // namespace

class WordText::Patterns {
 public:
  Code upper = compile(R"([\p{Lu}\p{Lt}]+)"), punctuation = compile(R"([\p{P}\p{S}])"), blank = compile(R"(\s+)");
};

WordText::WordText() : patterns_(std::make_shared<Patterns>()) {}

std::string WordText::operator()(std::string_view text) const {
  const std::string lower = substituted(patterns_->upper.get(), text, R"(\L$0)");
  const std::string apart = substituted(patterns_->punctuation.get(), lower, " $0 ");
  std::string words = substituted(patterns_->blank.get(), apart, " ");
  if (words.starts_with(' ')) words.erase(0, 1);
  if (words.ends_with(' ')) words.pop_back();
  return words;
}

}  // namespace prism
