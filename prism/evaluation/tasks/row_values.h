// Values of a data set's rows, and the changes that tasks make to their texts.
//
//   const std::string goal = text_of(row, "goal");
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "prism/core/fields.h"

namespace prism {

constexpr const char* kEvaluation = "eval";

/// @throws InputError for a row without this member.
const Json& member_of(const Json& row, const char* name);
/// A text; numbers become text. @throws InputError for a missing member, or another type.
std::string text_of(const Json& row, const char* name);
/// A whole number; text that spells one is read as one, true as 1, false as 0.
int64_t number_of(const Json& row, const char* name);
bool truth_of(const Json& row, const char* name);
/// A list of texts.
std::vector<std::string> list_of(const Json& row, const char* name);
/// A list of texts, or one text as a list of one.
std::vector<std::string> texts_of(const Json& row, const char* name);

/// Words between white space (Unicode's White_Space). Attached punctuation belongs to its word, and so does a byte that
/// is not UTF-8.
int64_t count_words(std::string_view text);
/// Parts between runs of white space, as Python's len(re.split(r"\s+", text)): blanks at an end count as one more.
int64_t words_between_blanks(const std::string& text);
/// Without the marks that WikiHow's texts in HellaSwag have. Source: the harness's preprocess().
std::string without_wikihow_marks(const std::string& text);
/// A document of WikiText without the spaces and marks of its tokenization. Source: the harness's
/// wikitext_detokenizer().
std::string without_wikitext_marks(std::string text);

}  // namespace prism
