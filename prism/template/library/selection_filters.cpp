// The filters that apply a filter or a test to each item: map, select and their relatives.
#include <algorithm>

#include "prism/template/library/filters.h"
#include "prism/template/library/lazy_list.h"
#include "prism/template/library/members.h"
#include "prism/template/library/value_tests.h"
#include "prism/template/values/operations.h"

namespace prism::jinja {
namespace {

/// The row that the argument number `index` names.
template <class Table>
auto row_named(Rendering& run, const Table& table, const Arguments& arguments, size_t index, std::string_view what) {
  const auto* name = arguments.positional[index].as<Text>();
  if (!name)
    run.refuse("expected the name of a {} in quotes; found {}; put it into quotes.", what,
               arguments.positional[index].kind());
  const auto row = table.find(name->bytes());
  if (row == table.end()) run.refuse("{}", unknown_name(table, name->bytes(), what));
  return row->second;
}

Arguments without_first(const Arguments& arguments, size_t count) {
  Arguments rest = arguments;
  rest.positional.erase(rest.positional.begin(), rest.positional.begin() + static_cast<ptrdiff_t>(count));
  return rest;
}

Values mapped_members(Rendering& run, const Value& input, const Arguments& arguments) {
  const Value *path = nullptr, *otherwise = nullptr;
  for (const auto& [name, value] : arguments.named) {
    if (name == "attribute") {
      path = &value;
    } else if (name == "default") {
      otherwise = value.is<None>() ? nullptr : &value;
    } else {
      run.refuse("expected attribute or default as arguments of map; found {}; remove it.", name.substr(0, 60));
    }
  }
  if (!path) run.refuse("expected a filter or an attribute for map; found neither; name one.");
  Values items = items_of(run, input);
  for (auto& item : items) item = get_path(run, item, *path, otherwise);
  return items;
}

Values mapped(Rendering& run, const Value& input, const Arguments& arguments) {
  if (!input.truth()) return {};
  if (arguments.positional.empty()) return mapped_members(run, input, arguments);
  const Filter filter = row_named(run, filters(), arguments, 0, "filter");
  const Arguments rest = without_first(arguments, 1);
  Values items = items_of(run, input);
  for (auto& item : items) item = filter(run, item, rest);
  return items;
}

/// Items for which a test, or their truth, is `wanted`. @param by_member  tests a member of theirs
template <bool wanted, bool by_member>
Values selected(Rendering& run, const Value& input, const Arguments& arguments) {
  if (!input.truth()) return {};
  constexpr size_t kTest = by_member ? 1 : 0;
  if (arguments.positional.size() < kTest)
    run.refuse("expected the name of an attribute for this filter; found none; name one.");
  const bool has_test = arguments.positional.size() > kTest;
  const ValueTest test = has_test ? row_named(run, value_tests(), arguments, kTest, "test") : nullptr;
  const Arguments rest = has_test ? without_first(arguments, kTest + 1) : Arguments();
  Values kept;
  for (auto& item : items_of(run, input)) {
    const Value tested = by_member ? get_path(run, item, arguments.positional[0]) : item;
    if ((test ? test(run, tested, rest) : tested.truth()) == wanted) kept.push_back(std::move(item));
  }
  return kept;
}

template <MakeItems make>
Value filter_lazily(Rendering& run, const Value& input, const Arguments& arguments) {
  return lazy_list(run, input, arguments, make);
}

}  // namespace

FilterTable selection_filters() {
  return {{"map", filter_lazily<mapped>},
          {"reject", filter_lazily<selected<false, false>>},
          {"rejectattr", filter_lazily<selected<false, true>>},
          {"select", filter_lazily<selected<true, false>>},
          {"selectattr", filter_lazily<selected<true, true>>}};
}

}  // namespace prism::jinja
