// Cutting and joining text, for the filters and methods that do so.
//
//   split_at("a.b", ".")  // "a", "b"
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "prism/template/values/rendering.h"
#include "prism/template/values/value.h"

namespace prism::jinja {

/// Pieces between occurrences of a separator that is not empty.
/// @param most  how many times to split; negative: always
std::vector<std::string_view> split_at(std::string_view text, std::string_view separator, int64_t most = -1);
/// The same, from the end.
std::vector<std::string_view> split_from_end(std::string_view text, std::string_view separator, int64_t most = -1);
/// Words between white space, as Python's text.split(). After `most` splits, the rest keeps its white space.
std::vector<std::string_view> split_words(std::string_view text, int64_t most = -1);
std::vector<std::string_view> split_words_from_end(std::string_view text, int64_t most = -1);
/// Python's text.splitlines().
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends = false);

/// The text without white space, or without the given characters, at its ends.
std::string_view stripped(std::string_view text, const std::string* characters = nullptr, bool at_begin = true,
                          bool at_end = true);

/// Python's text.replace(old, with, most). @throws InputError if the result is too long
std::string replaced(Rendering& run, std::string_view text, std::string_view old, std::string_view with, int64_t most);

/// The text between `left` and `right` spaces or other ASCII characters. @throws InputError if it is too long
std::string padded(Rendering& run, std::string_view text, int64_t left, int64_t right, char fill = ' ');

/// The longest prefix of at most `size` bytes that does not cut a character.
size_t complete_prefix(std::string_view text, size_t size);

/// The value as text: itself, or Python's str() of it.
Text soft_text(Rendering& run, const Value& value);

/// A list of texts.
Value list_of_texts(Rendering& run, const std::vector<std::string_view>& pieces, bool safe);

}  // namespace prism::jinja
