#include "prism/template/values/value.h"

#include <algorithm>

#include "prism/template/values/characters.h"
#include "prism/template/values/rendering.h"

namespace prism::jinja {
namespace {

size_t entries_of(const Dict& dict) {
  return dict.data->entries.size();
}

}  // namespace

Text make_text(std::string bytes, bool safe) {
  const auto characters = static_cast<int64_t>(count_characters(bytes));
  return {std::make_shared<TextData>(TextData{std::move(bytes), characters}), safe};
}

const Values& List::items() const {
  return data->items;
}

const std::vector<std::pair<Value, Value>>& Dict::entries() const {
  return data->entries;
}

const Value* Dict::find(std::string_view key) const {
  const auto [first, last] = data->index.equal_range(std::hash<std::string_view>{}(key));
  for (auto row = first; row != last; ++row) {
    const auto& entry = data->entries[row->second];
    const Text* text = entry.first.as<Text>();
    if (text && text->bytes() == key) return &entry.second;
  }
  return nullptr;
}

int64_t Range::size() const {
  // Unsigned: stop - start may not fit into 63 bits.
  const auto low = static_cast<uint64_t>(start), high = static_cast<uint64_t>(stop);
  if (step > 0) return start < stop ? static_cast<int64_t>((high - low - 1) / static_cast<uint64_t>(step)) + 1 : 0;
  return start > stop ? static_cast<int64_t>((low - high - 1) / (0 - static_cast<uint64_t>(step))) + 1 : 0;
}

int Value::depth() const {
  if (const auto* list = as<List>()) return list->data->depth;
  if (const auto* dict = as<Dict>()) return dict->data->depth;
  if (const auto* view = as<View>()) return view->dict.data->depth;
  if (const auto* generator = as<Generator>()) return generator->data->depth;
  if (const auto* object = as<ObjectPointer>()) return (*object)->depth();
  return 0;
}

std::string Value::kind() const {
  static constexpr std::string_view kKinds[] = {
      "an undefined value", "none",    "a boolean",  "an integer", "a float", "text", "a list", "a dict",
      "a view of a dict",   "a range", "a generator"};
  if (const auto* undefined = as<Undefined>(); undefined && undefined->why) return *undefined->why;
  if (const auto* list = as<List>(); list && list->is_tuple) return "a tuple";
  if (const auto* object = as<ObjectPointer>()) return (*object)->kind();
  return std::string(kKinds[data_.index()]);
}

bool Value::truth() const {
  if (is<Undefined>() || is<None>()) return false;
  if (const auto* number = as<double>()) return *number != 0;
  if (const auto number = whole()) return *number != 0;
  const auto size = length();
  return !size || *size != 0;
}

std::optional<int64_t> Value::length() const {
  if (is<Undefined>()) return 0;
  if (const auto* text = as<Text>()) return text->characters();
  if (const auto* list = as<List>()) return static_cast<int64_t>(list->items().size());
  if (const auto* dict = as<Dict>()) return static_cast<int64_t>(entries_of(*dict));
  if (const auto* view = as<View>()) return static_cast<int64_t>(entries_of(view->dict));
  if (const auto* range = as<Range>()) return range->size();
  return std::nullopt;
}

std::optional<int64_t> Value::whole() const {
  if (const auto* truth = as<bool>()) return *truth ? 1 : 0;
  if (const auto* number = as<int64_t>()) return *number;
  return std::nullopt;
}

std::optional<double> Value::real() const {
  if (const auto* number = as<double>()) return *number;
  if (const auto number = whole()) return static_cast<double>(*number);
  return std::nullopt;
}

Value Object::call(Rendering& run, const Arguments&) {
  run.refuse("expected a function before the parentheses; found {}; remove the call.", kind());
}

}  // namespace prism::jinja
