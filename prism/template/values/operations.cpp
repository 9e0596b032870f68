#include "prism/template/values/operations.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "prism/template/values/characters.h"

namespace prism::jinja {
namespace {

/// Compares numbers without rounding large integers to a float.
std::partial_ordering order_of(int64_t left, double right) {
  if (std::isnan(right)) return std::partial_ordering::unordered;
  if (right >= 9223372036854775808.0) return std::partial_ordering::less;
  if (right < -9223372036854775808.0) return std::partial_ordering::greater;
  const double whole = std::floor(right);
  const auto cut = static_cast<int64_t>(whole);
  if (left != cut) return left <=> cut;
  return right > whole ? std::partial_ordering::less : std::partial_ordering::equivalent;
}

std::optional<std::partial_ordering> number_order(const Value& left, const Value& right) {
  const auto left_whole = left.whole(), right_whole = right.whole();
  const auto *left_real = left.as<double>(), *right_real = right.as<double>();
  if (left_whole && right_whole) return *left_whole <=> *right_whole;
  if (left_real && right_real) return *left_real <=> *right_real;
  if (left_whole && right_real) return order_of(*left_whole, *right_real);
  if (left_real && right_whole) {
    const auto order = order_of(*right_whole, *left_real);
    return order == std::partial_ordering::less      ? std::partial_ordering::greater
           : order == std::partial_ordering::greater ? std::partial_ordering::less
                                                     : order;
  }
  return std::nullopt;
}

bool equal_lists(Rendering& run, const List& left, const List& right) {
  if (left.is_tuple != right.is_tuple || left.items().size() != right.items().size()) return false;
  if (left.data == right.data) return true;
  for (size_t i = 0; i < left.items().size(); ++i) {
    if (!equal(run, left.items()[i], right.items()[i])) return false;
  }
  return true;
}

bool equal_dicts(Rendering& run, const Dict& left, const Dict& right) {
  if (left.entries().size() != right.entries().size()) return false;
  if (left.data == right.data) return true;
  for (const auto& [key, value] : left.entries()) {
    const Value* other = find_value(run, right, key);
    if (!other || !equal(run, value, *other)) return false;
  }
  return true;
}

bool equal_views(Rendering& run, const View& left, const View& right) {
  if (left.part != right.part) return false;
  if (left.part == View::Part::values) return left.dict.data == right.dict.data;
  if (left.part == View::Part::items) return equal_dicts(run, left.dict, right.dict);
  const auto& entries = left.dict.entries();
  return entries.size() == right.dict.entries().size() &&
         std::all_of(entries.begin(), entries.end(),
                     [&](const auto& entry) { return find_value(run, right.dict, entry.first) != nullptr; });
}

bool equal_ranges(const Range& left, const Range& right) {
  if (left.size() != right.size()) return false;
  return left.size() == 0 || (left.start == right.start && (left.size() == 1 || left.step == right.step));
}

bool less_lists(Rendering& run, const List& left, const List& right) {
  const size_t both = std::min(left.items().size(), right.items().size());
  for (size_t i = 0; i < both; ++i) {
    if (!equal(run, left.items()[i], right.items()[i])) return less(run, left.items()[i], right.items()[i]);
  }
  return left.items().size() < right.items().size();
}

}  // namespace

bool equal(Rendering& run, const Value& left, const Value& right) {
  run.work();
  if (const auto order = number_order(left, right)) return *order == std::partial_ordering::equivalent;
  if (left.data().index() != right.data().index()) return false;
  if (const auto* text = left.as<Text>()) {
    const auto& other = right.as<Text>()->bytes();
    run.work(std::min(text->bytes().size(), other.size()));
    return text->bytes() == other;
  }
  if (const auto* list = left.as<List>()) return equal_lists(run, *list, *right.as<List>());
  if (const auto* dict = left.as<Dict>()) return equal_dicts(run, *dict, *right.as<Dict>());
  if (const auto* view = left.as<View>()) return equal_views(run, *view, *right.as<View>());
  if (const auto* range = left.as<Range>()) return equal_ranges(*range, *right.as<Range>());
  if (const auto* generator = left.as<Generator>()) return generator->data == right.as<Generator>()->data;
  if (const auto* object = left.as<ObjectPointer>()) return *object == *right.as<ObjectPointer>();
  return true;  // both undefined, or both none
}

bool less(Rendering& run, const Value& left, const Value& right) {
  run.work();
  if (const auto order = number_order(left, right)) return *order == std::partial_ordering::less;
  const auto *left_text = left.as<Text>(), *right_text = right.as<Text>();
  if (left_text && right_text) {
    run.work(std::min(left_text->bytes().size(), right_text->bytes().size()));
    return left_text->bytes() < right_text->bytes();  // the order of UTF-8 is that of code points
  }
  const auto *left_list = left.as<List>(), *right_list = right.as<List>();
  if (left_list && right_list && left_list->is_tuple == right_list->is_tuple)
    return less_lists(run, *left_list, *right_list);
  run.refuse("expected two numbers, texts or lists to put in order; found {} and {}; compare values of one kind.",
             left.kind(), right.kind());
}

bool contains(Rendering& run, const Value& haystack, const Value& needle) {
  if (const auto* text = haystack.as<Text>()) {
    const auto* part = needle.as<Text>();
    if (!part)
      run.refuse("expected text before `in` a text; found {}; convert it with the filter string.", needle.kind());
    run.work(text->bytes().size());
    return find_bytes(text->bytes(), part->bytes()) != std::string_view::npos;
  }
  const auto* view = haystack.as<View>();
  const auto* dict = view && view->part == View::Part::keys ? &view->dict : haystack.as<Dict>();
  if (dict) {
    if (!is_hashable(run, needle))
      run.refuse("expected a key before `in` a dict; found {}, which cannot be one; name a key.", needle.kind());
    return find_value(run, *dict, needle) != nullptr;
  }
  if (const auto* range = haystack.as<Range>(); range && needle.whole()) {
    const int64_t number = *needle.whole();
    if (range->step > 0 ? number < range->start || number >= range->stop
                        : number > range->start || number <= range->stop)
      return false;
    const auto place = static_cast<uint64_t>(number), start = static_cast<uint64_t>(range->start);
    return range->step > 0 ? (place - start) % static_cast<uint64_t>(range->step) == 0
                           : (start - place) % (0 - static_cast<uint64_t>(range->step)) == 0;
  }
  if (haystack.is<Generator>() || is_iterable(haystack)) {
    Iterator items(haystack);
    while (const auto item = items.next(run)) {
      if (equal(run, *item, needle)) return true;
    }
    return false;
  }
  run.refuse("expected text, a list or a dict after `in`; found {}; name one of these.", haystack.kind());
}

bool is_hashable(Rendering& run, const Value& value) {
  run.work();
  if (const auto* list = value.as<List>())
    return list->is_tuple && std::all_of(list->items().begin(), list->items().end(),
                                         [&](const Value& item) { return is_hashable(run, item); });
  return !value.is<Dict>() && !value.is<View>();
}

size_t hash_of(Rendering& run, const Value& key) {
  run.work();
  if (const auto* text = key.as<Text>()) {
    run.work(text->bytes().size());
    return std::hash<std::string_view>{}(text->bytes());
  }
  if (const auto number = key.real()) return std::hash<double>{}(*number);
  if (const auto* range = key.as<Range>()) return static_cast<size_t>(range->size());
  if (const auto* object = key.as<ObjectPointer>()) return std::hash<const void*>{}(object->get());
  if (const auto* list = key.as<List>(); list && list->is_tuple) {
    size_t hash = list->items().size();
    for (const auto& item : list->items()) hash = hash * 1'000'003 + hash_of(run, item);
    return hash;
  }
  if (key.is<List>() || key.is<Dict>() || key.is<View>())
    run.refuse("expected text, a number or a tuple as a key; found {}; use one of these.", key.kind());
  return key.data().index();
}

std::pair<Value, Value>* find_entry(Rendering& run, DictData& dict, const Value& key, size_t hash) {
  const auto [first, last] = dict.index.equal_range(hash);
  for (auto row = first; row != last; ++row) {
    if (equal(run, dict.entries[row->second].first, key)) return &dict.entries[row->second];
  }
  return nullptr;
}

const Value* find_value(Rendering& run, const Dict& dict, const Value& key) {
  const auto [first, last] = dict.data->index.equal_range(hash_of(run, key));
  for (auto row = first; row != last; ++row) {
    const auto& entry = dict.entries()[row->second];
    if (equal(run, entry.first, key)) return &entry.second;
  }
  return nullptr;
}

bool is_iterable(const Value& value) {
  return value.is<Undefined>() || value.is<Text>() || value.is<List>() || value.is<Dict>() || value.is<View>() ||
         value.is<Range>() || value.is<Generator>();
}

std::optional<Value> Iterator::next(Rendering& run) {
  run.work();
  if (const auto* list = source_.as<List>()) {
    if (at_ == list->items().size()) return std::nullopt;
    return list->items()[at_++];
  }
  if (const auto* text = source_.as<Text>()) {
    const auto& bytes = text->bytes();
    if (at_ == bytes.size()) return std::nullopt;
    const size_t start = at_;
    next_character(bytes, &at_);
    return run.text(bytes.substr(start, at_ - start));
  }
  if (const auto* generator = source_.as<Generator>()) return generator->data->next(run);
  const auto size = source_.length();
  if (!size) run.refuse("expected a list, a dict or text to go through; found {}; name one of these.", source_.kind());
  if (at_ == static_cast<size_t>(*size)) return std::nullopt;
  const size_t index = at_++;
  if (const auto* dict = source_.as<Dict>()) return dict->entries()[index].first;
  if (const auto* view = source_.as<View>()) return view_item(run, *view, index);
  return (*source_.as<Range>())[static_cast<int64_t>(index)];
}

Values items_of(Rendering& run, const Value& value) {
  Values items;
  Iterator iterator(value);
  while (auto item = iterator.next(run)) {
    run.check_items(static_cast<int64_t>(items.size()));
    items.push_back(std::move(*item));
  }
  return items;
}

Value view_item(Rendering& run, const View& view, size_t index) {
  const auto& [key, value] = view.dict.entries()[index];
  if (view.part == View::Part::items) return run.tuple({key, value});
  return view.part == View::Part::keys ? key : value;
}

size_t find_bytes(std::string_view text, std::string_view needle, size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (needle.empty()) return from;
  // glibc's memmem takes linear time; std::string::find may take the product of the two lengths.
  const void* found = memmem(text.data() + from, text.size() - from, needle.data(), needle.size());
  return found ? static_cast<size_t>(static_cast<const char*>(found) - text.data()) : std::string_view::npos;
}

size_t find_last_bytes(std::string_view text, std::string_view needle, size_t end) {
  text = text.substr(0, end);
  const std::string backwards(text.rbegin(), text.rend()), wanted(needle.rbegin(), needle.rend());
  const size_t at = find_bytes(backwards, wanted);
  return at == std::string_view::npos ? at : text.size() - at - needle.size();
}

}  // namespace prism::jinja
