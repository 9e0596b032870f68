// Generators that compute their items when the first one is asked for.
//
//   return lazy_list(run, input, arguments, [](Rendering& later, const Value& input, const Arguments&) { ... });
#pragma once

#include "prism/template/values/rendering.h"
#include "prism/template/values/value.h"

namespace prism::jinja {

using MakeItems = Values (*)(Rendering& later, const Value& input, const Arguments& arguments);

/// A generator over what `make` returns.
Value lazy_list(Rendering& run, const Value& input, const Arguments& arguments, MakeItems make);

}  // namespace prism::jinja
