// Python's comparisons and iteration over values.
//
//   if (equal(run, role, expected)) ...
//   for (Iterator items(value); auto item = items.next(run);) use(*item);
#pragma once

#include <compare>
#include <optional>
#include <string>

#include "prism/template/values/rendering.h"
#include "prism/template/values/value.h"

namespace prism::jinja {

/// Python's left == right.
bool equal(Rendering& run, const Value& left, const Value& right);

/// Python's left < right. @throws InputError if the values have no order, such as text and a number.
bool less(Rendering& run, const Value& left, const Value& right);

/// Python's needle in haystack.
bool contains(Rendering& run, const Value& haystack, const Value& needle);

/// Returns true for values that may be a key of a dict.
bool is_hashable(Rendering& run, const Value& value);

/// Hash of a key: equal for equal keys. @throws InputError if it may be none
size_t hash_of(Rendering& run, const Value& key);

/// The entry of a key with this hash, or null.
std::pair<Value, Value>* find_entry(Rendering& run, DictData& dict, const Value& key, size_t hash);
/// The value of a key, or null. @param key  hashable
const Value* find_value(Rendering& run, const Dict& dict, const Value& key);

bool is_iterable(const Value& value);

/// Goes through the items of a list, the characters of a text, the keys of a dict and so on, once.
class Iterator {
 public:
  /// @throws InputError in the first next() if the value cannot be iterated
  explicit Iterator(Value source) : source_(std::move(source)) {}
  std::optional<Value> next(Rendering& run);

 private:
  Value source_;
  size_t at_ = 0;  ///< the next item's number, or its offset in a text
};

/// Python's list(value).
Values items_of(Rendering& run, const Value& value);

/// The key, value or pair number `index` of a view.
Value view_item(Rendering& run, const View& view, size_t index);

/// Offset of `needle` in text[from, to), in bytes, or npos. Linear in the worst case.
size_t find_bytes(std::string_view text, std::string_view needle, size_t from = 0);
/// The last offset of `needle` that ends at or before `end`, or npos.
size_t find_last_bytes(std::string_view text, std::string_view needle, size_t end = std::string_view::npos);

}  // namespace prism::jinja
