#define PCRE2_CODE_UNIT_WIDTH 8
#include "prism/tokenizer/split/regex.h"

#include <pcre2.h>

#include <array>
#include <new>

#include "prism/core/error.h"
#include "prism/core/text/utf8.h"
#include "prism/tokenizer/split/stand_ins.h"

namespace prism {
namespace {

std::string pcre2_reason(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

}  // namespace

Regex::Regex(const std::string& pattern, std::string_view source)
    : pattern_(pattern), wants_stand_ins_(!with_stand_ins(replace_invalid_utf8(pattern))) {
  int code = 0;
  size_t offset = 0;
  code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                            PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &code, &offset, nullptr),
              pcre2_code_free);
  PRISM_CHECK(code_ != nullptr, "tokenizer",
              "{}: expected a regular expression; found \"{}\" ({} at offset {}); correct it.", source, pattern,
              pcre2_reason(code), offset);
  // If there is no machine code for this processor or pattern, PCRE2 interprets the pattern.
  pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);
}

RegexMatcher::RegexMatcher()
    : data_(pcre2_match_data_create(1, nullptr)),
      context_(pcre2_match_context_create(nullptr)),
      stack_(pcre2_jit_stack_create(32 * 1024, 8 * 1024 * 1024, nullptr)) {
  if (data_ == nullptr || context_ == nullptr) throw std::bad_alloc();
  pcre2_jit_stack_assign(context_, nullptr, stack_);
}

RegexMatcher::~RegexMatcher() {
  pcre2_jit_stack_free(stack_);
  pcre2_match_context_free(context_);
  pcre2_match_data_free(data_);
}

std::optional<RegexMatcher::Match> RegexMatcher::search(const Regex& regex, std::string_view text, size_t start) {
  const int found = pcre2_match(regex.code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), start,
                                PCRE2_NO_UTF_CHECK, data_, context_);
  if (found == PCRE2_ERROR_NOMATCH) return std::nullopt;
  PRISM_CHECK(found >= 0, "tokenizer",
              "expected the pattern \"{}\" to be matched with bounded backtracking; found: {} in a text of {} bytes; "
              "simplify the pattern or cut the text.",
              regex.pattern(), pcre2_reason(found), text.size());
  const size_t* bounds = pcre2_get_ovector_pointer(data_);
  return Match{bounds[0], bounds[1]};
}

}  // namespace prism
