// The two ways in which Python fills values into text: "%s" % value and "{}".format(value).
//
//   format_percent(run, "%s: %d", {name, count})
#pragma once

#include <string>

#include "prism/template/values/rendering.h"
#include "prism/template/values/value.h"

namespace prism::jinja {

/// Python's format % values, with the conversions %s, %r, %d, %i, %f and %%, and flags as in "%-5s", "%03d", "%.2f".
std::string format_percent(Rendering& run, const std::string& format, const Values& values);

/// Python's format.format(...), with the fields {}, {0} and {name}, without conversions and formats.
std::string format_braces(Rendering& run, const std::string& format, const Arguments& arguments);

}  // namespace prism::jinja
