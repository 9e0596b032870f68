// Numbers, names and escapes of texts, as Jinja2 reads them.
//
//   unescaped(R"(a\n)", line) == "a\n"
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "prism/template/syntax/lexer.h"

namespace prism::jinja {

/// Size of the name at the beginning, 0 if there is none. @throws nothing: names of ASCII only
size_t name_size(std::string_view text);

/// Reads the number at the beginning into `token` and returns its size, 0 if there is none.
/// @param behind_dot  no float may begin here, as in a.0.1
/// @throws InputError for integers of more than 63 bits
size_t scan_number(std::string_view text, bool behind_dot, int line, Token* token);

/// The text between quotes with its escapes replaced: Python's text.encode("ascii", "backslashreplace")
/// .decode("unicode-escape"). @throws InputError for broken escapes, \N and halves of surrogate pairs
std::string unescaped(std::string_view text, int line);

}  // namespace prism::jinja
