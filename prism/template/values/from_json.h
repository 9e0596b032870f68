// JSON as values of a template.
//
//   Value messages = from_json(run, values["messages"]);
#pragma once

#include "prism/core/json.h"
#include "prism/template/values/rendering.h"
#include "prism/template/values/value.h"

namespace prism::jinja {

/// @throws InputError for text that is not UTF-8, integers of over 63 bits and too many levels
Value from_json(Rendering& run, const Json& json, int level = 0);

}  // namespace prism::jinja
