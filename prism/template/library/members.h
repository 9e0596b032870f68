// Members of values: object.name and object[index], where Jinja2 tries attributes and items in turn.
//
//   Value role = get_member(run, message, "role");
#pragma once

#include <map>
#include <optional>
#include <string>

#include "prism/template/values/rendering.h"
#include "prism/template/values/value.h"

namespace prism::jinja {

/// A method of text, lists or dicts.
using Method = Value (*)(Rendering& run, const Value& self, const Arguments& arguments);
using MethodTable = std::map<std::string, Method>;

const MethodTable& text_methods();
const MethodTable& list_methods();
const MethodTable& dict_methods();

/// The method object.name, or null.
Method find_method(const Value& object, const std::string& name);

/// The attribute object.name; an undefined value for those that Jinja2's sandbox forbids, such as list.append; nothing
/// if there is none. @throws InputError for methods of Python that are not supported
std::optional<Value> find_attribute(Rendering& run, const Value& object, const std::string& name);

/// object.name: an attribute, else an item, else undefined.
Value get_member(Rendering& run, const Value& object, const std::string& name);

/// object[index]: an item, else an attribute, else undefined.
Value get_item(Rendering& run, const Value& object, const Value& index);

/// The member that a path such as "function.name" or 0 leads to.
/// @param otherwise  replaces undefined members, unless null
Value get_path(Rendering& run, Value object, const Value& path, const Value* otherwise = nullptr);

}  // namespace prism::jinja
