#include "prism/formats/gguf_metadata.h"

#include <concepts>
#include <type_traits>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/text/names.h"
#include "prism/core/text/printable.h"

namespace prism {
namespace {

constexpr std::string_view kTypeNames[] = {"uint8", "int8",   "uint16", "int16",  "uint32", "int32",  "float32",
                                           "bool",  "string", "array",  "uint64", "int64",  "float64"};
static_assert(std::size(kTypeNames) == std::variant_size_v<GgufValue>);
static_assert(std::is_same_v<std::variant_alternative_t<kGgufArrayType, GgufValue>, GgufArray>);

template <class Value>
constexpr bool is_integer = std::integral<Value> && !std::is_same_v<Value, bool>;

std::string key_text(std::string_view key) {
  return short_line(key, 80);
}

template <class Value>
std::optional<int64_t> as_integer(Value value) {
  if (std::in_range<int64_t>(value)) return static_cast<int64_t>(value);
  return std::nullopt;
}

[[noreturn]] void refuse_size(const std::string& file, std::string_view key, uint64_t value) {
  throw InputError("gguf", fmt::format("{}: expected {} to be at most {}; found {}; convert the file again.", file,
                                       key_text(key), INT64_MAX, value));
}

}  // namespace

uint32_t gguf_element_type(const GgufArray& array) {
  const auto index = static_cast<uint32_t>(array.index());
  return index < kGgufArrayType ? index : index + 1;
}

std::string gguf_type_name(const GgufValue& value) {
  if (const auto* array = std::get_if<GgufArray>(&value))
    return fmt::format("array of {}", kTypeNames[gguf_element_type(*array)]);
  return std::string(kTypeNames[value.index()]);
}

const GgufValue* GgufMetadata::find(std::string_view key) const {
  const auto row = values_.find(key);
  return row == values_.end() ? nullptr : &row->second;
}

const GgufValue& GgufMetadata::at(std::string_view key) const {
  if (const GgufValue* found = find(key)) return *found;
  std::vector<std::string> keys;
  for (const auto& [other, value] : values_) keys.push_back(other);
  const std::string near = nearest_name(std::string(key), keys);
  throw InputError(
      "gguf", fmt::format("{}: expected the key {}; found {} others{}; name another file, or convert this "
                          "one again.",
                          file_, key_text(key), keys.size(), near.empty() ? "" : ", among them " + key_text(near)));
}

void GgufMetadata::refuse(std::string_view key, std::string_view expected, const GgufValue& found) const {
  throw InputError("gguf", fmt::format("{}: expected {} to be {}; found {}; name another file, or convert this one "
                                       "again.",
                                       file_, key_text(key), expected, gguf_type_name(found)));
}

template <class Value>
const Value& GgufMetadata::scalar(std::string_view key, std::string_view expected) const {
  const GgufValue& found = at(key);
  if (const auto* value = std::get_if<Value>(&found)) return *value;
  refuse(key, expected, found);
}

template <class Value>
const std::vector<Value>& GgufMetadata::array(std::string_view key, std::string_view expected) const {
  const GgufValue& found = at(key);
  const auto* values = std::get_if<GgufArray>(&found);
  if (values == nullptr || !std::holds_alternative<std::vector<Value>>(*values)) refuse(key, expected, found);
  return std::get<std::vector<Value>>(*values);
}

int64_t GgufMetadata::integer(std::string_view key, const GgufValue& found) const {
  return std::visit(
      [&](const auto& value) -> int64_t {
        if constexpr (is_integer<std::decay_t<decltype(value)>>) {
          if (const auto whole = as_integer(value)) return *whole;
          refuse_size(file_, key, static_cast<uint64_t>(value));
        } else {
          refuse(key, "an integer", found);
        }
      },
      found);
}

double GgufMetadata::real(std::string_view key, const GgufValue& found) const {
  return std::visit(
      [&](const auto& value) -> double {
        using Value = std::decay_t<decltype(value)>;
        if constexpr (is_integer<Value> || std::floating_point<Value>)
          return static_cast<double>(value);
        else
          refuse(key, "a number", found);
      },
      found);
}

std::vector<int64_t> GgufMetadata::integers(std::string_view key, const GgufValue& found) const {
  const auto* array = std::get_if<GgufArray>(&found);
  if (array == nullptr) refuse(key, "an array of integers", found);
  return std::visit(
      [&](const auto& values) -> std::vector<int64_t> {
        using Value = typename std::decay_t<decltype(values)>::value_type;
        if constexpr (is_integer<Value>) {
          std::vector<int64_t> wide;
          wide.reserve(values.size());
          for (const Value value : values) {
            const auto whole = as_integer(value);
            if (!whole) refuse_size(file_, key, static_cast<uint64_t>(value));
            wide.push_back(*whole);
          }
          return wide;
        } else {
          refuse(key, "an array of integers", found);
        }
      },
      *array);
}

std::vector<double> GgufMetadata::reals(std::string_view key, const GgufValue& found) const {
  const auto* array = std::get_if<GgufArray>(&found);
  if (array == nullptr) refuse(key, "an array of numbers", found);
  return std::visit(
      [&](const auto& values) -> std::vector<double> {
        using Value = typename std::decay_t<decltype(values)>::value_type;
        if constexpr (is_integer<Value> || std::floating_point<Value>) {
          std::vector<double> wide;
          wide.reserve(values.size());
          for (const Value value : values) wide.push_back(static_cast<double>(value));
          return wide;
        } else {
          refuse(key, "an array of numbers", found);
        }
      },
      *array);
}

const std::string& GgufMetadata::text(std::string_view key) const {
  return scalar<std::string>(key, "a string");
}

int64_t GgufMetadata::integer(std::string_view key) const {
  return integer(key, at(key));
}

const std::vector<std::string>& GgufMetadata::texts(std::string_view key) const {
  return array<std::string>(key, "an array of strings");
}

std::vector<int64_t> GgufMetadata::integers(std::string_view key) const {
  return integers(key, at(key));
}

std::optional<std::string> GgufMetadata::find_text(std::string_view key) const {
  return contains(key) ? std::optional(text(key)) : std::nullopt;
}

std::optional<int64_t> GgufMetadata::find_integer(std::string_view key) const {
  return contains(key) ? std::optional(integer(key)) : std::nullopt;
}

std::optional<double> GgufMetadata::find_real(std::string_view key) const {
  return contains(key) ? std::optional(real(key, at(key))) : std::nullopt;
}

std::optional<bool> GgufMetadata::find_flag(std::string_view key) const {
  return contains(key) ? std::optional(scalar<bool>(key, "a bool")) : std::nullopt;
}

const std::vector<std::string>* GgufMetadata::find_texts(std::string_view key) const {
  return contains(key) ? &texts(key) : nullptr;
}

std::optional<std::vector<int64_t>> GgufMetadata::find_integers(std::string_view key) const {
  return contains(key) ? std::optional(integers(key)) : std::nullopt;
}

std::optional<std::vector<double>> GgufMetadata::find_reals(std::string_view key) const {
  return contains(key) ? std::optional(reals(key, at(key))) : std::nullopt;
}

}  // namespace prism
