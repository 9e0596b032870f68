#include "prism/formats/safetensors_header.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/text/names.h"

namespace prism {
namespace {

std::string list_text(const std::vector<int64_t>& values) {
  return fmt::format("[{}]", fmt::join(values, ","));
}

/// Receives the tokens of the JSON library's parser. A tree of the whole header would take several times its memory,
/// and the library's filter of a tree takes quadratic time.
class HeaderHandler {
 public:
  HeaderHandler(std::span<const std::byte> data, const std::string& file) : data_(data), file_(file) {}

  bool null() { return refuse("null"); }
  bool boolean(bool) { return refuse("boolean"); }
  bool number_integer(int64_t value) { return number(std::nullopt, std::to_string(value)); }
  bool number_unsigned(uint64_t value) {
    const bool fits = value <= static_cast<uint64_t>(INT64_MAX);
    return number(fits ? std::optional(static_cast<int64_t>(value)) : std::nullopt, std::to_string(value));
  }
  bool number_float(double, const std::string& digits) { return number(std::nullopt, digits); }
  bool binary(std::vector<uint8_t>&) { return refuse("binary"); }

  bool string(std::string& text) {
    if (place_ == Place::metadata) {
      if (!header_.metadata.emplace(key_, std::move(text)).second) refuse_twice(file_, key_);
    } else if (place_ == Place::entry && field_ == Field::dtype) {
      entry_.type = type_of(text);
    } else {
      return place_ == Place::list ? number(std::nullopt, "\"" + text + "\"") : refuse("string");
    }
    return true;
  }

  bool start_object(size_t) {
    switch (place_) {
      case Place::outside:
        place_ = Place::header;
        return true;
      case Place::header:
        place_ = key_ == kMetadataKey ? Place::metadata : Place::entry;
        if (place_ == Place::metadata && std::exchange(has_metadata_, true)) refuse_twice(file_, key_);
        entry_ = TensorEntry();
        entry_.name = key_;
        given_ = {};
        return true;
      default:
        return refuse("object");
    }
  }

  bool end_object() {
    if (place_ == Place::entry) finish_entry();
    place_ = place_ == Place::header ? Place::outside : Place::header;
    return true;
  }

  bool start_array(size_t) {
    if (place_ != Place::entry || field_ == Field::dtype) return refuse("array");
    place_ = Place::list;
    list().clear();
    return true;
  }

  bool end_array() {
    place_ = Place::entry;
    return true;
  }

  bool key(std::string& name) {
    if (place_ == Place::entry) {
      const auto* row = std::find(std::begin(kFields), std::end(kFields), name);
      if (row == std::end(kFields)) refuse_fields();
      field_ = static_cast<Field>(row - kFields);
      bool& given = given_[static_cast<size_t>(field_)];
      if (std::exchange(given, true)) refuse_twice(where(), name);
    } else {
      key_ = std::move(name);
    }
    return true;
  }

  bool parse_error(size_t, const std::string&, const nlohmann::json::exception&) { return false; }

  SafetensorsHeader take() { return std::move(header_); }

 private:
  enum class Place { outside, header, metadata, entry, list };
  enum class Field { dtype, shape, data_offsets };
  static constexpr std::string_view kFields[] = {"dtype", "shape", "data_offsets"};

  std::string where() const { return fmt::format("{}: {}", file_, entry_.name); }
  std::string_view field_name() const { return kFields[static_cast<size_t>(field_)]; }
  std::vector<int64_t>& list() { return field_ == Field::shape ? entry_.shape : offsets_; }

  bool number(std::optional<int64_t> value, const std::string& text) {
    if (place_ != Place::list) return refuse("number");
    PRISM_CHECK(value, "safetensors",
                "{}: expected {} to hold whole numbers from 0 to {}; found {}; the file is damaged, copy it again.",
                where(), field_name(), INT64_MAX, text);
    list().push_back(*value);
    return true;
  }

  [[noreturn]] static void refuse_twice(const std::string& where, const std::string& name) {
    throw InputError(
        "safetensors",
        fmt::format(
            "{}: expected every name once in the header; found \"{}\" twice; the file is damaged, copy it again.",
            where, name));
  }

  [[noreturn]] void refuse_fields() const {
    throw InputError("safetensors", fmt::format("{}: expected exactly dtype, shape and data_offsets; found something "
                                                "else; the file is damaged, copy it again.",
                                                where()));
  }

  /// Rejects a value of the wrong type at the current place.
  [[noreturn]] bool refuse(const char* found) {
    switch (place_) {
      case Place::outside:
        throw InputError(
            "safetensors",
            fmt::format("{}: expected a header that is a JSON object; found {}; the file is damaged, copy it again.",
                        file_, found));
      case Place::header:
        if (key_ == kMetadataKey)
          throw InputError(
              "safetensors",
              fmt::format("{}: expected {} to be an object of texts; found {}; the file is damaged, copy it again.",
                          file_, key_, found));
        entry_.name = key_;
        refuse_fields();
      case Place::metadata:
        throw InputError("safetensors",
                         fmt::format("{}: expected {}.{} to be text; found {}; the file is damaged, copy it again.",
                                     file_, kMetadataKey, key_, found));
      case Place::entry:
        throw InputError("safetensors",
                         fmt::format("{}: expected {} to be {}; found {}; the file is damaged, copy it again.", where(),
                                     field_name(), field_ == Field::dtype ? "text" : "a list", found));
      case Place::list:
        break;
    }
    const std::string_view kind = found;
    if (kind != "object" && kind != "array") number(std::nullopt, found);
    throw InputError("safetensors", fmt::format("{}: expected a header of objects of names, types, shapes; found "
                                                "deeper nesting; the file is damaged, copy it again.",
                                                file_));
  }

  ElementType type_of(const std::string& name) const {
    if (const auto type = find_element_type(name)) return *type;
    throw InputError("safetensors",
                     fmt::format("{}: expected a dtype that is one of {}; found \"{}\"; convert the file first.",
                                 where(), join_names(element_type_names()), name));
  }

  /// Sets the entry's data after all checks that need only this entry.
  void finish_entry() {
    if (std::find(given_.begin(), given_.end(), false) != given_.end()) refuse_fields();
    PRISM_CHECK(offsets_.size() == 2 && offsets_[0] <= offsets_[1], "safetensors",
                "{}: expected data_offsets [begin, end]; found {}; the file is damaged, copy it again.", where(),
                list_text(offsets_));
    const auto begin = static_cast<size_t>(offsets_[0]), end = static_cast<size_t>(offsets_[1]);
    PRISM_CHECK(
        end <= data_.size(), "safetensors",
        "{}: expected its data to end by byte {} of the data; found {}; the file is cut short or damaged, restore it.",
        where(), data_.size(), end);
    const auto bytes = tensor_bytes(entry_.shape, entry_.type);
    PRISM_CHECK(bytes == offsets_[1] - offsets_[0], "safetensors",
                "{}: expected {} bytes for {} {}; found {}; the file is damaged, copy it again.", where(),
                bytes ? fmt::to_string(*bytes) : "over 2^63", element_type_name(entry_.type), list_text(entry_.shape),
                end - begin);
    entry_.data = data_.subspan(begin, end - begin);
    header_.entries.push_back(std::move(entry_));
  }

  std::span<const std::byte> data_;
  const std::string& file_;
  SafetensorsHeader header_;
  Place place_ = Place::outside;
  bool has_metadata_ = false;
  std::string key_;  ///< of the value being read, in the header or its metadata
  Field field_ = Field::dtype;
  std::array<bool, std::size(kFields)> given_ = {};  ///< which fields the entry has so far
  TensorEntry entry_;
  std::vector<int64_t> offsets_;  ///< of the entry
};

}  // namespace

std::optional<int64_t> tensor_bytes(const std::vector<int64_t>& shape, ElementType type) {
  const bool valid = std::all_of(shape.begin(), shape.end(), [](int64_t size) { return size >= 0; });
  if (!valid) return std::nullopt;
  // The other dimensions of an empty tensor may have a product that overflows.
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  int64_t bytes = element_bytes(type);
  for (const int64_t size : shape) {
    if (__builtin_mul_overflow(bytes, size, &bytes)) return std::nullopt;
  }
  return bytes;
}

SafetensorsHeader parse_safetensors_header(std::string_view text, std::span<const std::byte> data,
                                           const std::string& file) {
  HeaderHandler handler(data, file);
  PRISM_CHECK(nlohmann::json::sax_parse(text, &handler), "safetensors",
              "{}: expected a header in JSON; found something else in its {} bytes; the file is damaged, copy it "
              "again, or of another format.",
              file, text.size());
  return handler.take();
}

}  // namespace prism
