// Values as text: Python's str() and repr(), and JSON as json.dumps() writes it.
//
//   printed(run, value)  // True, 1.0, ['a', 'b']
#pragma once

#include <string>

#include "prism/template/values/rendering.h"
#include "prism/template/values/value.h"

namespace prism::jinja {

/// Python's str(value). An undefined value is empty. @throws InputError where Python prints an address.
std::string printed(Rendering& run, const Value& value);

/// Python's repr(value): as str(), but texts in quotes.
std::string represented(Rendering& run, const Value& value);

/// Python's repr(number): the shortest digits that read back as the same number, "1.0", "1e-05", "inf".
std::string float_text(double number);

/// How json.dumps() writes.
struct JsonStyle {
  bool ensure_ascii = false;  ///< writes other characters as \uXXXX
  bool sort_keys = false;
  bool has_indent = false;            ///< puts every item on a line of its own
  std::string indent;                 ///< of one level
  std::string item_separator = ", ";  ///< between items, before a line break if there is one
  std::string key_separator = ": ";
};

/// Python's json.dumps(value). @throws InputError for values that JSON cannot hold, such as undefined ones.
std::string json_text(Rendering& run, const Value& value, const JsonStyle& style);

}  // namespace prism::jinja
