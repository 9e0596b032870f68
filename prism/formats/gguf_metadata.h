// The key/value pairs of a GGUF file, which describe its model and tokenizer.
//
//   const GgufMetadata& metadata = reader.metadata();
//   const int64_t layers = metadata.integer("llama.block_count");
//   const double base = metadata.find_real("llama.rope.freq_base").value_or(10000.0);
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace prism {

/// Arrays of each scalar type, in the order of GGUF's type numbers. The format also allows arrays of arrays, which no
/// known model uses and prism refuses.
using GgufArray =
    std::variant<std::vector<uint8_t>, std::vector<int8_t>, std::vector<uint16_t>, std::vector<int16_t>,
                 std::vector<uint32_t>, std::vector<int32_t>, std::vector<float>, std::vector<bool>,
                 std::vector<std::string>, std::vector<uint64_t>, std::vector<int64_t>, std::vector<double>>;

/// A value of its exact type, which programs that read the file may insist on. index() is GGUF's type number.
/// Strings are bytes: the format asks for UTF-8, but nothing here checks it.
using GgufValue = std::variant<uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, float, bool, std::string,
                               GgufArray, uint64_t, int64_t, double>;

/// GGUF's type number of arrays.
constexpr uint32_t kGgufArrayType = 9;

/// GGUF's type number of the array's elements.
uint32_t gguf_element_type(const GgufArray& array);
/// "uint32" or "array of string".
std::string gguf_type_name(const GgufValue& value);

/// Values by key. The accessors convert between types of one kind, since files differ in the widths that they use.
class GgufMetadata {
 public:
  using Values = std::map<std::string, GgufValue, std::less<>>;

  GgufMetadata() = default;
  /// @param file  the file's name in messages.
  GgufMetadata(std::string file, Values values) : file_(std::move(file)), values_(std::move(values)) {}

  const Values& values() const { return values_; }
  bool contains(std::string_view key) const { return values_.contains(key); }
  /// Null if there is no such key.
  const GgufValue* find(std::string_view key) const;

  /// These throw InputError, naming the file and the key, if the key is absent or its value is of another kind: text is
  /// a string; an integer has any integer type and fits into int64.
  const std::string& text(std::string_view key) const;
  int64_t integer(std::string_view key) const;
  const std::vector<std::string>& texts(std::string_view key) const;
  std::vector<int64_t> integers(std::string_view key) const;

  /// The same for keys that may be absent: std::nullopt or null. A value of another kind still throws. A real is a
  /// floating-point number or any integer; a flag is a bool.
  std::optional<std::string> find_text(std::string_view key) const;
  std::optional<int64_t> find_integer(std::string_view key) const;
  std::optional<double> find_real(std::string_view key) const;
  std::optional<bool> find_flag(std::string_view key) const;
  const std::vector<std::string>* find_texts(std::string_view key) const;
  std::optional<std::vector<int64_t>> find_integers(std::string_view key) const;
  std::optional<std::vector<double>> find_reals(std::string_view key) const;

 private:
  const GgufValue& at(std::string_view key) const;
  [[noreturn]] void refuse(std::string_view key, std::string_view expected, const GgufValue& found) const;
  /// The value, if it is exactly a `Value` or an array of them. Throws otherwise.
  template <class Value>
  const Value& scalar(std::string_view key, std::string_view expected) const;
  template <class Value>
  const std::vector<Value>& array(std::string_view key, std::string_view expected) const;
  int64_t integer(std::string_view key, const GgufValue& found) const;
  double real(std::string_view key, const GgufValue& found) const;
  std::vector<int64_t> integers(std::string_view key, const GgufValue& found) const;
  std::vector<double> reals(std::string_view key, const GgufValue& found) const;

  std::string file_;
  Values values_;
};

}  // namespace prism
