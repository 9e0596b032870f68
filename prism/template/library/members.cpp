#include "prism/template/library/members.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "prism/core/text/names.h"
#include "prism/template/library/text_pieces.h"
#include "prism/template/values/arithmetic.h"
#include "prism/template/values/operations.h"

namespace prism::jinja {
namespace {

/// Methods that change a list or a dict, which Jinja2's sandbox forbids.
bool is_forbidden(const Value& object, const std::string& name) {
  static const std::set<std::string> kOfLists = {"append", "clear", "pop",    "reverse",
                                                 "insert", "sort",  "extend", "remove"};
  static const std::set<std::string> kOfDicts = {"clear", "pop", "popitem", "setdefault", "update"};
  if (name.starts_with("__")) return true;
  const auto* list = object.as<List>();
  return (list && !list->is_tuple && kOfLists.contains(name)) || (object.is<Dict>() && kOfDicts.contains(name));
}

/// Methods of Python that do not exist here.
bool is_unsupported(const Value& object, const std::string& name) {
  static const std::set<std::string> kOfText = {"casefold",    "encode",    "expandtabs",   "format_map",
                                                "isascii",     "isdecimal", "isidentifier", "isnumeric",
                                                "isprintable", "istitle",   "maketrans",    "translate"};
  return (object.is<Text>() && kOfText.contains(name)) || (object.is<Dict>() && name == "fromkeys");
}

/// Members of Python's numbers and ranges, none of which exists here.
bool is_unsupported_of_number(const Value& object, const std::string& name) {
  static const std::set<std::string> kOfIntegers = {
      "as_integer_ratio", "bit_count", "bit_length", "conjugate", "denominator",
      "from_bytes",       "imag",      "numerator",  "real",      "to_bytes"};
  static const std::set<std::string> kOfFloats = {"as_integer_ratio", "conjugate", "fromhex", "hex", "imag",
                                                  "is_integer",       "real"};
  if (object.is<Range>()) return name == "count" || name == "index";
  return (object.whole() && kOfIntegers.contains(name)) || (object.is<double>() && kOfFloats.contains(name));
}

std::optional<Value> attribute_of_range(const Range& range, const std::string& name) {
  if (name == "start") return range.start;
  if (name == "stop") return range.stop;
  if (name == "step") return range.step;
  return std::nullopt;
}

[[noreturn]] void refuse_member_of_undefined(Rendering& run, const Value& object, const std::string& name) {
  run.refuse("expected a value before the member {}; found {}; check it with `is defined` first.", name.substr(0, 60),
             object.kind());
}

/// Whether Python finds obj[argument] to be of a wrong kind or missing, so that its attribute is tried.
std::string name_of_index(const Value& index) {
  const auto* text = index.as<Text>();
  return text ? text->bytes() : std::string();
}

}  // namespace

Method find_method(const Value& object, const std::string& name) {
  const auto* table = object.is<Text>()   ? &text_methods()
                      : object.is<List>() ? &list_methods()
                      : object.is<Dict>() ? &dict_methods()
                                          : nullptr;
  if (!table) return nullptr;
  const auto row = table->find(name);
  if (row == table->end()) return nullptr;
  if (const auto* list = object.as<List>(); list && list->is_tuple && name == "copy") return nullptr;
  return row->second;
}

std::optional<Value> find_attribute(Rendering& run, const Value& object, const std::string& name) {
  run.work();
  if (const auto* one = object.as<ObjectPointer>()) return (*one)->attribute(run, name);
  if (is_unsupported_of_number(object, name))
    run.refuse("expected no member of {}; found {}; write the template without it.", object.kind(), name);
  if (const auto* range = object.as<Range>()) return attribute_of_range(*range, name);
  if (const Method method = find_method(object, name)) {
    return run.function(
        fmt::format("the method {}", name),
        [object, method](Rendering& later, const Arguments& arguments) { return method(later, object, arguments); },
        object.depth());
  }
  if (is_forbidden(object, name))
    return run.undefined(
        fmt::format("the member {} of {}, which templates may not use", name.substr(0, 60), object.kind()));
  if (is_unsupported(object, name)) {
    const auto& table = object.is<Text>() ? text_methods() : dict_methods();
    run.refuse("expected one of the methods {}; found {}; write the template without it.", join_names(names_of(table)),
               name);
  }
  return std::nullopt;
}

Value get_member(Rendering& run, const Value& object, const std::string& name) {
  if (object.is<Undefined>()) refuse_member_of_undefined(run, object, name);
  if (auto found = find_attribute(run, object, name)) return *found;
  if (const auto* dict = object.as<Dict>()) {
    if (const Value* found = dict->find(name)) return *found;
  }
  return run.undefined(fmt::format("the member {} of {}, which is undefined", name.substr(0, 60), object.kind()));
}

Value get_item(Rendering& run, const Value& object, const Value& index) {
  run.work();
  const std::string name = name_of_index(index);
  if (object.is<Undefined>()) refuse_member_of_undefined(run, object, name);
  if (auto found = item_of(run, object, index)) return *found;
  if (index.is<Text>()) {
    if (auto found = find_attribute(run, object, name)) return *found;
  }
  return run.undefined(fmt::format("the item {} of {}, which is undefined",
                                   index.is<Text>() ? name.substr(0, complete_prefix(name, 60)) : index.kind(),
                                   object.kind()));
}

Value get_path(Rendering& run, Value object, const Value& path, const Value* otherwise) {
  const auto* text = path.as<Text>();
  const std::vector<std::string_view> names = text ? split_at(text->bytes(), ".") : std::vector<std::string_view>{""};
  for (const std::string_view name : names) {
    int64_t number = 0;
    const bool is_number = !name.empty() &&
                           std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; }) &&
                           std::from_chars(name.data(), name.data() + name.size(), number).ec == std::errc();
    const Value index = !text ? path : is_number ? Value(number) : run.text(std::string(name));
    object = get_item(run, object, index);
    if (otherwise && object.is<Undefined>()) object = *otherwise;
  }
  return object;
}

}  // namespace prism::jinja
