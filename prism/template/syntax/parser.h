// Reads a template into its syntax tree.
//
//   const Syntax tree = parse_template("{% for m in messages %}{{ m.content }}{% endfor %}");
#pragma once

#include <string_view>

#include "prism/template/syntax/syntax.h"

namespace prism::jinja {

/// @throws InputError naming the line, what was expected and what was found
Syntax parse_template(std::string_view source);

}  // namespace prism::jinja
