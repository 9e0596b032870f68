// Code points: counting and cutting UTF-8 by them, and what Python's str knows about them.
//
//   count_characters("né") == 2
//   upper_case("straße") == "STRASSE"
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace prism::jinja {

/// Number of code points. @param text  well-formed UTF-8, as in all functions here.
size_t count_characters(std::string_view text);

/// Offset of the code point number `index`, or the text's size if there are fewer.
size_t offset_of_character(std::string_view text, size_t index);

/// Reads the code point at `*at` and moves `*at` past it. Requires *at < text.size().
char32_t next_character(std::string_view text, size_t* at);

/// Appends a code point other than a surrogate, at most U+10FFFF.
void append_character(std::string& text, char32_t character);

/// Python's str.isspace() of one character.
bool is_space(char32_t character);
/// Python's str.isalpha() of one character.
bool is_letter(char32_t character);
/// Python's str.isdigit() of one character.
bool is_digit(char32_t character);
/// Python's str.isalnum() of one character.
bool is_alphanumeric(char32_t character);
/// Python's str.isprintable() of one character.
bool is_printable(char32_t character);
/// Characters that have a case: upper, lower or title.
bool is_cased(char32_t character);
bool is_upper(char32_t character);
bool is_lower(char32_t character);

/// Python's str.upper(), lower(), title(), capitalize() and swapcase(). One character may become up to three.
std::string upper_case(std::string_view text);
std::string lower_case(std::string_view text);
std::string title_case(std::string_view text);
std::string capitalized(std::string_view text);
std::string swapped_case(std::string_view text);

/// Offset where white space at the end of the text begins.
size_t end_without_space(std::string_view text);
/// Offset of the first character that is not white space, or the text's size.
size_t begin_without_space(std::string_view text);

}  // namespace prism::jinja
