// The values of a template: Python's, since templates are written for Jinja2, which is Python.
//
//   Value name = run.text("user");
//   if (const Text* text = name.as<Text>()) write(text->bytes());
//
// Values never change once made, except namespaces, the current place of generators and variables of scopes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace prism::jinja {

class Value;
class Object;
class Rendering;
using Values = std::vector<Value>;

/// What a missing name or member evaluates to. Prints as nothing, and most other uses are errors.
struct Undefined {
  std::shared_ptr<const std::string> why;  ///< "`x`, which is undefined", or null
};

struct None {};

/// UTF-8 with its number of code points, in which Python counts and cuts.
struct TextData {
  std::string bytes;
  int64_t characters = 0;
};

struct Text {
  std::shared_ptr<const TextData> data;
  bool safe = false;  ///< made by the filters safe or escape: other text is escaped when added to it

  const std::string& bytes() const { return data->bytes; }
  int64_t characters() const { return data->characters; }
  bool is_ascii() const { return static_cast<size_t>(data->characters) == data->bytes.size(); }
};

/// A text that no rendering counts, such as one of the template itself.
Text make_text(std::string bytes, bool safe = false);

struct ListData;

/// A list or a tuple.
struct List {
  std::shared_ptr<const ListData> data;
  bool is_tuple = false;

  const Values& items() const;
};

struct DictData;

struct Dict {
  std::shared_ptr<const DictData> data;

  const std::vector<std::pair<Value, Value>>& entries() const;
  /// The value of a text key, or null.
  const Value* find(std::string_view key) const;
};

/// What dict.keys(), .values() and .items() return.
struct View {
  enum class Part { keys, values, items };
  Dict dict;
  Part part = Part::keys;
};

struct Range {
  int64_t start = 0, stop = 0, step = 1;  ///< step is not 0
  int64_t size() const;
  int64_t operator[](int64_t index) const { return start + index * step; }
};

/// An iterator that can be consumed once, such as the result of the filter map.
struct GeneratorData {
  std::function<std::optional<Value>(Rendering&)> next;
  int depth = 1;
};

struct Generator {
  std::shared_ptr<GeneratorData> data;
};

using ObjectPointer = std::shared_ptr<Object>;

class Value {
 public:
  using Data =
      std::variant<Undefined, None, bool, int64_t, double, Text, List, Dict, View, Range, Generator, ObjectPointer>;

  Value() = default;
  template <class Type>
  requires(!std::is_same_v<std::decay_t<Type>, Value>) Value(Type data)
      : data_(std::move(data)) {}  // NOLINT: values convert implicitly, as in Python

  template <class Type>
  const Type* as() const {
    return std::get_if<Type>(&data_);
  }
  template <class Type>
  bool is() const {
    return std::holds_alternative<Type>(data_);
  }
  const Data& data() const { return data_; }

  /// How many levels of values are inside this one: 0 for numbers and text, 1 for a list of them.
  int depth() const;
  /// What it is, for messages: "a list", or "`x`, which is undefined".
  std::string kind() const;
  /// Python's bool(value).
  bool truth() const;
  /// Python's len(value), or nothing for values without one.
  std::optional<int64_t> length() const;
  /// The integer that a bool or an integer is.
  std::optional<int64_t> whole() const;
  /// The number that a bool, an integer or a float is.
  std::optional<double> real() const;

 private:
  Data data_;
};

struct ListData {
  Values items;
  int depth = 1;
};

struct DictData {
  std::vector<std::pair<Value, Value>> entries;   ///< in the order of insertion
  std::unordered_multimap<size_t, size_t> index;  ///< hash of the key -> place
  int depth = 1;
};

/// Arguments of a call.
struct Arguments {
  Values positional;
  std::vector<std::pair<std::string, Value>> named;
};

/// Values with behaviour: namespaces, macros, loops, functions and methods. Two are equal if they are the same object.
class Object {
 public:
  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;

  /// What it is, for messages: "a namespace".
  virtual std::string kind() const = 0;
  /// The member `object.name`, or nothing.
  virtual std::optional<Value> attribute(Rendering&, const std::string& /*name*/) { return std::nullopt; }
  virtual bool is_callable() const { return false; }
  virtual Value call(Rendering& run, const Arguments& arguments);
  virtual int depth() const { return 1; }
  /// Python's repr(), or nothing where it would contain an address.
  virtual std::optional<std::string> print(Rendering&) const { return std::nullopt; }
};

/// A function, or a method bound to its value.
class Function : public Object {
 public:
  using Body = std::function<Value(Rendering&, const Arguments&)>;
  Function(std::string kind, Body body, int depth = 1)
      : kind_(std::move(kind)), body_(std::move(body)), depth_(depth) {}

  std::string kind() const override { return kind_; }
  bool is_callable() const override { return true; }
  Value call(Rendering& run, const Arguments& arguments) override { return body_(run, arguments); }
  int depth() const override { return depth_; }

 private:
  std::string kind_;
  Body body_;
  int depth_;
};

}  // namespace prism::jinja
