// The filters that read or make lists.
#include <algorithm>

#include "prism/template/library/filters.h"
#include "prism/template/library/lazy_list.h"
#include "prism/template/library/members.h"
#include "prism/template/library/parameters.h"
#include "prism/template/library/text_pieces.h"
#include "prism/template/values/arithmetic.h"
#include "prism/template/values/characters.h"
#include "prism/template/values/operations.h"

namespace prism::jinja {
namespace {

Value filter_length(Rendering& run, const Value& input, const Arguments& arguments) {
  const Parameters given(run, arguments, "the filter length", {});
  const auto size = input.length();
  if (!size) run.refuse("expected text, a list or a dict to count; found {}; use the filter list first.", input.kind());
  return *size;
}

Value filter_default(Rendering& run, const Value& input, const Arguments& arguments) {
  const Parameters given(run, arguments, "the filter default", {"default_value", "boolean"});
  const bool is_missing = input.is<Undefined>() || (given.truth(1, false) && !input.truth());
  return !is_missing ? input : given[0] ? *given[0] : run.text("");
}

Value filter_first(Rendering& run, const Value& input, const Arguments& arguments) {
  const Parameters given(run, arguments, "the filter first", {});
  const auto item = Iterator(input).next(run);
  return item ? *item : run.undefined("the first item of an empty list, which is undefined");
}

/// The items in reverse order. @throws InputError for what Python cannot reverse
Values reversed_items(Rendering& run, const Value& input) {
  if (input.is<Generator>())
    run.refuse("expected text, a list or a dict to read from the end; found a generator; use the filter list first.");
  Values items = items_of(run, input);
  std::reverse(items.begin(), items.end());
  return items;
}

Value filter_last(Rendering& run, const Value& input, const Arguments& arguments) {
  const Parameters given(run, arguments, "the filter last", {});
  const auto* list = input.as<List>();
  if (list && !list->items().empty()) return list->items().back();
  if (const auto* text = input.as<Text>(); text && text->characters() > 0) return *item_of(run, input, int64_t{-1});
  const Values items = reversed_items(run, input);
  return items.empty() ? run.undefined("the last item of an empty list, which is undefined") : items[0];
}

Value filter_list(Rendering& run, const Value& input, const Arguments& arguments) {
  const Parameters given(run, arguments, "the filter list", {});
  return run.list(items_of(run, input));
}

Value filter_items(Rendering& run, const Value& input, const Arguments& arguments) {
  const Parameters given(run, arguments, "the filter items", {});
  return lazy_list(run, input, arguments, [](Rendering& later, const Value& value, const Arguments&) -> Values {
    if (value.is<Undefined>()) return {};
    const auto* dict = value.as<Dict>();
    if (!dict) later.refuse("expected a dict before the filter items; found {}; name one.", value.kind());
    return items_of(later, View{*dict, View::Part::items});
  });
}

Value filter_reverse(Rendering& run, const Value& input, const Arguments& arguments) {
  const Parameters given(run, arguments, "the filter reverse", {});
  if (input.is<Text>()) return slice_of(run, input, {None{}, None{}, int64_t{-1}});
  if (input.is<Generator>()) {
    Values items = items_of(run, input);
    std::reverse(items.begin(), items.end());
    return run.list(std::move(items));
  }
  if (!is_iterable(input)) run.refuse("expected a list or text to reverse; found {}; name one.", input.kind());
  return lazy_list(run, input, arguments,
                   [](Rendering& later, const Value& value, const Arguments&) { return reversed_items(later, value); });
}

/// Lower case for texts, unless case counts.
Value sort_key(Rendering& run, const Value& value, bool case_sensitive) {
  const auto* text = value.as<Text>();
  return text && !case_sensitive ? run.text(lower_case(text->bytes())) : value;
}

/// Items with what they are sorted by.
struct Keyed {
  Value key, item;
};

Values sorted_by_key(Rendering& run, std::vector<Keyed> rows, bool reverse) {
  std::stable_sort(rows.begin(), rows.end(), [&](const Keyed& left, const Keyed& right) {
    return reverse ? less(run, right.key, left.key) : less(run, left.key, right.key);
  });
  Values items;
  items.reserve(rows.size());
  for (auto& row : rows) items.push_back(std::move(row.item));
  return items;
}

Value filter_sort(Rendering& run, const Value& input, const Arguments& arguments) {
  const Parameters given(run, arguments, "the filter sort", {"reverse", "case_sensitive", "attribute"});
  const bool case_sensitive = given.truth(1, false);
  const Value* path = given.other_than_none(2);
  Values paths;  // of several attributes: "age,name"
  if (const auto* text = path ? path->as<Text>() : nullptr) {
    for (const auto part : split_at(text->bytes(), ",")) paths.push_back(run.text(std::string(part)));
  } else if (path) {
    paths.push_back(*path);
  }
  std::vector<Keyed> rows;
  for (auto& item : items_of(run, input)) {
    Values keys;
    for (const auto& part : paths) keys.push_back(sort_key(run, get_path(run, item, part), case_sensitive));
    Value key = paths.empty() ? sort_key(run, item, case_sensitive) : run.list(std::move(keys));
    rows.push_back({std::move(key), std::move(item)});
  }
  return run.list(sorted_by_key(run, std::move(rows), given.truth(0, false)));
}

Value filter_dict_sort(Rendering& run, const Value& input, const Arguments& arguments) {
  const Parameters given(run, arguments, "the filter dictsort", {"case_sensitive", "by", "reverse"});
  const auto* dict = input.as<Dict>();
  if (!dict) run.refuse("expected a dict before the filter dictsort; found {}; name one.", input.kind());
  const std::string by = given[1] ? given.text(1).bytes() : "key";
  if (by != "key" && by != "value")
    run.refuse("expected dictsort by \"key\" or \"value\"; found another text; use one of them.");
  std::vector<Keyed> rows;
  for (const auto& [key, value] : dict->entries())
    rows.push_back({sort_key(run, by == "key" ? key : value, given.truth(0, false)), run.tuple({key, value})});
  return run.list(sorted_by_key(run, std::move(rows), given.truth(2, false)));
}

Value filter_unique(Rendering& run, const Value& input, const Arguments& arguments) {
  const Parameters checked(run, arguments, "the filter unique", {"case_sensitive", "attribute"});
  return lazy_list(run, input, arguments, [](Rendering& later, const Value& value, const Arguments& same) {
    const Parameters given(later, same, "the filter unique", {"case_sensitive", "attribute"});
    const Value* path = given.other_than_none(1);
    DictData seen;
    Values items;
    for (auto& item : items_of(later, value)) {
      const Value key = sort_key(later, path ? get_path(later, item, *path) : item, given.truth(0, false));
      const size_t hash = hash_of(later, key);
      if (find_entry(later, seen, key, hash)) continue;
      seen.index.emplace(hash, seen.entries.size());
      seen.entries.emplace_back(key, None{});
      items.push_back(std::move(item));
    }
    return items;
  });
}

template <bool greatest>
Value filter_extreme(Rendering& run, const Value& input, const Arguments& arguments) {
  const Parameters given(run, arguments, greatest ? "the filter max" : "the filter min",
                         {"case_sensitive", "attribute"});
  const Value* path = given.other_than_none(1);
  std::optional<Keyed> best;
  for (auto& item : items_of(run, input)) {
    Value key = sort_key(run, path ? get_path(run, item, *path) : item, given.truth(0, false));
    if (!best || (greatest ? less(run, best->key, key) : less(run, key, best->key)))
      best = Keyed{std::move(key), std::move(item)};
  }
  return best ? best->item : run.undefined("the extreme of an empty list, which is undefined");
}

Value filter_sum(Rendering& run, const Value& input, const Arguments& arguments) {
  const Parameters given(run, arguments, "the filter sum", {"attribute", "start"});
  const Value* path = given.other_than_none(0);
  Value total = given[1] ? *given[1] : Value(int64_t{0});
  if (total.is<Text>()) run.refuse("expected a number or list to start a sum with; found text; use the filter join.");
  Iterator items(input);
  while (const auto item = items.next(run))
    total = arithmetic(run, Operator::add, total, path ? get_path(run, *item, *path) : *item);
  return total;
}

Value filter_batch(Rendering& run, const Value& input, const Arguments& arguments) {
  const Parameters checked(run, arguments, "the filter batch", {"linecount", "fill_with"}, 1);
  return lazy_list(run, input, arguments, [](Rendering& later, const Value& value, const Arguments& same) {
    const Parameters given(later, same, "the filter batch", {"linecount", "fill_with"}, 1);
    const int64_t size = given.whole(0, 1);
    Values batches, batch;
    for (auto& item : items_of(later, value)) {
      if (static_cast<int64_t>(batch.size()) == size) batches.push_back(later.list(std::exchange(batch, {})));
      batch.push_back(std::move(item));
    }
    if (batch.empty()) return batches;
    if (const Value* fill = given.other_than_none(1); fill && static_cast<int64_t>(batch.size()) < size) {
      later.check_items(size);
      batch.resize(static_cast<size_t>(size), *fill);
    }
    batches.push_back(later.list(std::move(batch)));
    return batches;
  });
}

Value filter_slice(Rendering& run, const Value& input, const Arguments& arguments) {
  const Parameters checked(run, arguments, "the filter slice", {"slices", "fill_with"}, 1);
  return lazy_list(run, input, arguments, [](Rendering& later, const Value& value, const Arguments& same) {
    const Parameters given(later, same, "the filter slice", {"slices", "fill_with"}, 1);
    const int64_t slices = given.whole(0, 1);
    if (slices < 1) later.refuse("expected at least 1 slice; found {}; ask for more.", slices);
    later.check_items(slices);
    const Values items = items_of(later, value);
    const auto size = static_cast<int64_t>(items.size());
    Values made;
    auto at = items.begin();
    for (int64_t i = 0; i < slices; ++i) {
      const auto end = at + size / slices + (i < size % slices ? 1 : 0);
      Values part(at, end);
      if (const Value* fill = given.other_than_none(1); fill && i >= size % slices) part.push_back(*fill);
      made.push_back(later.list(std::move(part)));
      at = end;
    }
    return made;
  });
}

}  // namespace

FilterTable list_filters() {
  return {{"batch", filter_batch},     {"count", filter_length},       {"d", filter_default},
          {"default", filter_default}, {"dictsort", filter_dict_sort}, {"first", filter_first},
          {"items", filter_items},     {"last", filter_last},          {"length", filter_length},
          {"list", filter_list},       {"max", filter_extreme<true>},  {"min", filter_extreme<false>},
          {"reverse", filter_reverse}, {"slice", filter_slice},        {"sort", filter_sort},
          {"sum", filter_sum},         {"unique", filter_unique}};
}

}  // namespace prism::jinja
