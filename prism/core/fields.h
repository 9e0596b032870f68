// One list of fields per options struct. JSON, command-line overrides, help and the saved recipe are derived from it.
//
//   struct TrainOptions {
//     double learning_rate = 6e-4;
//     template <class Visitor>
//     void visit(Visitor& v) { v("learning_rate", learning_rate, "peak, after the warm-up"); }
//   };
//   TrainOptions options = fields_from_json<TrainOptions>(json, "recipe.train");   // throws on unknown names
//   set_field(options, "learning_rate", "3e-4");                                    // as a command-line flag does
//
// A member is a bool, int64_t, double, std::string, another struct with visit(), a std::vector of those, or Json if its
// value can have several types ("log" or a list). A std::optional of any of these is omitted from the JSON while it is
// empty. A std::pair is a list of two.
#pragma once

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

#include "prism/core/error.h"
#include "prism/core/json.h"
#include "prism/core/text/names.h"

namespace prism {

/// One leaf field, for help texts.
struct FieldDescription {
  std::string path;           ///< "train.learning_rate"; a list's elements are "layers[i].heads"
  std::string type;           ///< "whole number", "number", "text", "true or false", "list of ..."
  std::string default_value;  ///< as JSON
  std::string help;
};

namespace detail {

struct AnyVisitor {
  template <class T>
  void operator()(const char*, T&, const char*) {}
};

template <class T>
concept HasFields = requires(T& value, AnyVisitor& visitor) {
  value.visit(visitor);
};

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {
  using Element = T;
};

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {
  using Value = T;
};

template <class T>
struct IsPair : std::false_type {};
template <class A, class B>
struct IsPair<std::pair<A, B>> : std::true_type {};

void scalar_from_json(bool& value, const Json& json, const std::string& path);
void scalar_from_json(int64_t& value, const Json& json, const std::string& path);
void scalar_from_json(double& value, const Json& json, const std::string& path);
void scalar_from_json(std::string& value, const Json& json, const std::string& path);
inline void scalar_from_json(Json& value, const Json& json, const std::string&) {
  value = json;
}

/// Converts a flag's text to JSON. Text fields need no quotes; elsewhere `4M` becomes 4000000.
Json json_from_text(std::string_view text, bool wants_text);

[[noreturn]] void fail_unknown(const std::string& owner, const std::string& name,
                               const std::vector<std::string>& known);
[[noreturn]] void fail_type(const std::string& path, std::string_view expected, const Json& found);

/// "layers[0-3].heads" -> head "layers", indices [0, 3], rest "heads".
struct PathStep {
  std::string name, rest;
  bool indexed = false;
  int64_t first = 0, last = 0;
};
/// @param whole  the path that `path` ends, for messages.
PathStep split_path(std::string_view path, std::string_view whole);

template <class T>
constexpr const char* type_name() {
  if constexpr (std::is_same_v<T, bool>) return "true or false";
  if constexpr (std::is_same_v<T, int64_t>) return "whole number";
  if constexpr (std::is_same_v<T, double>) return "number";
  if constexpr (std::is_same_v<T, std::string>) return "text";
  if constexpr (IsVector<T>::value || IsPair<T>::value) return "list";
  if constexpr (IsOptional<T>::value) return type_name<typename IsOptional<T>::Value>();
  return "object";
}

template <class T>
Json to_json(const T& value);
template <class T>
void from_json(T& value, const Json& json, const std::string& path);

struct JsonWriter {
  Json json = Json::object();
  template <class T>
  void operator()(const char* name, T& value, const char*) {
    if constexpr (IsOptional<T>::value) {
      if (!value) return;
    }
    json[name] = to_json(value);
  }
};

struct JsonReader {
  const Json& json;
  const std::string& owner;
  std::vector<std::string> known;
  template <class T>
  void operator()(const char* name, T& value, const char*) {
    known.emplace_back(name);
    if (auto member = json.find(name); member != json.end())
      from_json(value, *member, owner.empty() ? name : owner + "." + name);
  }
};

template <class T>
Json to_json(const T& value) {
  if constexpr (HasFields<T>) {
    JsonWriter writer;
    const_cast<T&>(value).visit(writer);  // visit() is one function for reading and writing
    return std::move(writer.json);
  } else if constexpr (IsVector<T>::value) {
    Json list = Json::array();
    for (const auto& element : value) list.push_back(to_json(element));
    return list;
  } else if constexpr (IsOptional<T>::value) {
    return value ? to_json(*value) : Json();
  } else if constexpr (IsPair<T>::value) {
    return Json::array({to_json(value.first), to_json(value.second)});
  } else {
    return Json(value);
  }
}

template <class T>
void from_json(T& value, const Json& json, const std::string& path) {
  if constexpr (HasFields<T>) {
    if (!json.is_object()) fail_type(path, "an object", json);
    JsonReader reader{json, path, {}};
    value.visit(reader);
    for (const auto& [name, member] : json.items()) {
      if (std::find(reader.known.begin(), reader.known.end(), name) == reader.known.end())
        fail_unknown(path, name, reader.known);
    }
  } else if constexpr (IsVector<T>::value) {
    if (!json.is_array())
      fail_type(path, std::is_same_v<T, std::vector<std::string>> ? R"(a list such as ["a", "b"])" : "a list", json);
    value.clear();
    for (size_t i = 0; i < json.size(); ++i) from_json(value.emplace_back(), json[i], fmt::format("{}[{}]", path, i));
  } else if constexpr (IsOptional<T>::value) {
    value.reset();
    if (!json.is_null()) from_json(value.emplace(), json, path);
  } else if constexpr (IsPair<T>::value) {
    if (!json.is_array() || json.size() != 2) fail_type(path, "a list of two", json);
    from_json(value.first, json[0], path + "[0]");
    from_json(value.second, json[1], path + "[1]");
  } else {
    scalar_from_json(value, json, path);
  }
}

template <class T>
void set_value(T& value, const std::string& rest, std::string_view text, const std::string& path);

struct PathSetter {
  PathStep step;
  std::string_view text;
  const std::string& path;
  bool found = false;
  std::vector<std::string> known;
  template <class T>
  void operator()(const char* name, T& value, const char*) {
    known.emplace_back(name);
    if (step.name != name) return;
    found = true;
    if (!step.indexed) return set_value(value, step.rest, text, path);
    if constexpr (IsVector<T>::value) {
      const auto size = static_cast<int64_t>(value.size());
      PRISM_CHECK(size > 0, "fields", "{}: expected a list with elements; found an empty one; set the whole list.",
                  path);
      PRISM_CHECK(
          step.first <= step.last && step.last < size, "fields",
          "{}: expected indices from 0 to {}; found {}; choose others.", path, size - 1,
          step.first == step.last ? fmt::format("{}", step.first) : fmt::format("{}-{}", step.first, step.last));
      for (int64_t i = step.first; i <= step.last; ++i) set_value(value[static_cast<size_t>(i)], step.rest, text, path);
    } else {
      throw InputError(
          "fields",
          fmt::format("{}: expected no index, because {} is not a list; found [...]; leave it out.", path, name));
    }
  }
};

template <class T>
void set_value(T& value, const std::string& rest, std::string_view text, const std::string& path) {
  if constexpr (HasFields<T>) {
    if (rest.empty()) return from_json(value, json_from_text(text, false), path);
    PathSetter setter{split_path(rest, path), text, path, false, {}};
    value.visit(setter);
    const std::string owner = rest.size() < path.size() ? path.substr(0, path.size() - rest.size() - 1) : "";
    if (!setter.found) fail_unknown(owner, setter.step.name, setter.known);
  } else {
    PRISM_CHECK(rest.empty(), "fields", "{}: expected a field; found \".{}\" below a plain value; leave that out.",
                path, rest);
    from_json(value, json_from_text(text, std::is_same_v<T, std::string>), path);
  }
}

struct Describer {
  std::string prefix;
  std::vector<FieldDescription>& rows;
  template <class T>
  void operator()(const char* name, T& value, const char* help) {
    if constexpr (HasFields<T>) {
      Describer inner{prefix + name + ".", rows};
      value.visit(inner);
    } else if constexpr (IsVector<T>::value) {
      if constexpr (HasFields<typename IsVector<T>::Element>) {
        typename IsVector<T>::Element element{};
        Describer inner{prefix + name + "[i].", rows};
        element.visit(inner);
      } else {
        rows.push_back({prefix + name, "list", to_json(value).dump(), help});
      }
    } else {
      rows.push_back({prefix + name, type_name<T>(), to_json(value).dump(), help});
    }
  }
};

}  // namespace detail

/// Every field with its value, in the order of visit().
template <class T>
Json fields_to_json(const T& value) {
  return detail::to_json(value);
}

/// Overwrites the fields that are present in `json`.
/// @param owner  the struct's name in messages, e.g. "recipe.train"; may be empty.
/// @throws InputError for an unknown name (naming the nearest known one) or a value of the wrong type.
template <class T>
void read_fields(T& value, const Json& json, const std::string& owner) {
  detail::from_json(value, json, owner);
}

template <class T>
T fields_from_json(const Json& json, const std::string& owner) {
  T value;
  read_fields(value, json, owner);
  return value;
}

/// Sets one field, or the same field in a range of list elements.
/// @param path  "train.learning_rate", "model.layers[0-3].heads".
/// @param text  the value as typed; numbers may end in k, M, G (powers of 1000); lists and objects are JSON.
/// @throws InputError like read_fields().
template <class T>
void set_field(T& value, const std::string& path, std::string_view text) {
  detail::set_value(value, path, text, path);
}

/// The leaf fields of a T with their defaults, for help texts.
template <class T>
std::vector<FieldDescription> describe_fields(const std::string& prefix = "") {
  std::vector<FieldDescription> rows;
  T value{};
  detail::Describer describer{prefix, rows};
  value.visit(describer);
  return rows;
}

template <class T>
bool equal_fields(const T& a, const T& b) {
  return fields_to_json(a) == fields_to_json(b);
}

namespace detail {
/// @param byte  position of the fault in `text`, counted from 1; greater than its size if it ends too early.
[[noreturn]] void fail_parse(std::string_view source, size_t byte, std::string_view text);

[[noreturn]] void fail_doubled(std::string_view source, const std::string& member);

/// Parser callback that finds duplicate members. @throws InputError, since the parser would keep only one of the two.
class DoubledKeys {
 public:
  explicit DoubledKeys(std::string_view source) : source_(source) {}
  template <class Value, class Event>
  bool operator()(int, Event event, const Value& parsed) {
    if (event == Event::object_start) open_.emplace_back();
    if (event == Event::object_end) open_.pop_back();
    if (event == Event::key && !open_.back().insert(parsed.template get<std::string>()).second)
      fail_doubled(source_, parsed.template get<std::string>());
    return true;
  }

 private:
  std::string_view source_;
  std::vector<std::unordered_set<std::string>> open_;  ///< members seen so far in each enclosing object
};

/// @throws InputError for empty text, or for nesting so deep that recursive copying and printing would exhaust the
///         stack.
void check_json_text(std::string_view text, std::string_view source);
}  // namespace detail

/// Parses text as JSON.
/// @tparam Value  Json, or nlohmann::json for objects with very many members.
/// @throws InputError naming `source` and the position of the fault.
template <class Value = Json>
Value parse_json(std::string_view text, std::string_view source) {
  detail::check_json_text(text, source);
  try {
    return Value::parse(text, detail::DoubledKeys(source));
  } catch (const typename Value::parse_error& error) {
    detail::fail_parse(source, error.byte, text);
  } catch (const typename Value::exception&) {
    throw InputError("json", fmt::format("expected JSON in {}; found a number out of range; correct it.", source));
  }
}

/// JSON as text. Bytes that are not UTF-8, for instance in file names, become replacement characters.
/// @param indent  spaces per level; -1 writes one line.
std::string to_text(const Json& json, int indent = -1);
/// Reads and parses a file. @throws InputError.
Json read_json(const std::string& path);

}  // namespace prism
