// Cuts a template into text and the tokens of its tags, as Jinja2 does with trim_blocks and lstrip_blocks.
//
//   for (const Token& token : tokenize("Hi {{ name }}!")) ...
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace prism::jinja {

struct Token {
  enum class Kind {
    data,            ///< text outside tags
    variable_begin,  ///< {{
    variable_end,    ///< }}
    block_begin,     ///< {%
    block_end,       ///< %}
    name,
    string,
    integer,
    real,
    sign,  ///< an operator or bracket
    end    ///< of the template
  };
  Kind kind = Kind::end;
  std::string text = {};  ///< of data, names and signs; strings are unescaped
  std::variant<int64_t, double> number = {};
  int line = 1;

  bool is_sign(std::string_view wanted) const { return kind == Kind::sign && text == wanted; }
  bool is_name(std::string_view wanted) const { return kind == Kind::name && text == wanted; }
  /// What it is, for messages: "`foo`".
  std::string description() const;
};

/// The tokens of a template, the last one of kind end. A single newline at the end of the template is dropped.
/// @throws InputError naming the line of what is not UTF-8, not closed, or no token
std::vector<Token> tokenize(std::string_view source);

/// Throws the InputError of a template's syntax: "line 3: ...".
[[noreturn]] void refuse_syntax(int line, const std::string& sentence);

}  // namespace prism::jinja
