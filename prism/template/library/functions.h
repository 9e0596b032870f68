// The functions that every template knows: range, dict, namespace, raise_exception and strftime_now.
//
//   if (auto function = find_function(run, "range")) ...
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "prism/template/values/rendering.h"
#include "prism/template/values/value.h"

namespace prism::jinja {

/// Attributes that a template may set, also from inside a loop.
class Namespace : public Object {
 public:
  std::string kind() const override { return "a namespace"; }
  std::optional<Value> attribute(Rendering& run, const std::string& name) override;
  /// @throws InputError for a name that begins with an underscore
  void set(Rendering& run, const std::string& name, const Value& value);
  void clear() { attributes_.clear(); }

 private:
  std::unordered_map<std::string, Value> attributes_;
};

/// The function with this name, or nothing. @throws InputError for functions of Jinja2 that are not supported
std::optional<Value> find_function(Rendering& run, const std::string& name);

}  // namespace prism::jinja
