// The tests: value is name(arguments).
//
//   value_tests().at("string")(run, value, {}) == true
#pragma once

#include <map>
#include <string>

#include "prism/template/values/rendering.h"
#include "prism/template/values/value.h"

namespace prism::jinja {

using ValueTest = bool (*)(Rendering& run, const Value& input, const Arguments& arguments);

/// All tests by name, those of Jinja2.
const std::map<std::string, ValueTest>& value_tests();

}  // namespace prism::jinja
