// The methods of Python's list, tuple and dict that change nothing.
#include "prism/template/library/members.h"
#include "prism/template/library/parameters.h"
#include "prism/template/values/operations.h"

namespace prism::jinja {
namespace {

Value list_count(Rendering& run, const Value& self, const Arguments& arguments) {
  const Parameters given(run, arguments, "count()", {""}, 1);
  int64_t count = 0;
  for (const auto& item : self.as<List>()->items()) count += equal(run, item, *given[0]) ? 1 : 0;
  return count;
}

Value list_index(Rendering& run, const Value& self, const Arguments& arguments) {
  const Parameters given(run, arguments, "index()", {""}, 1);
  const Values& items = self.as<List>()->items();
  for (size_t i = 0; i < items.size(); ++i) {
    if (equal(run, items[i], *given[0])) return static_cast<int64_t>(i);
  }
  run.refuse("expected an item that the list has; found another; check with `in` first.");
}

Value container_copy(Rendering& run, const Value& self, const Arguments& arguments) {
  const Parameters given(run, arguments, "copy()", {});
  return self;  // values never change
}

Value dict_get(Rendering& run, const Value& self, const Arguments& arguments) {
  const Parameters given(run, arguments, "get()", {"", ""}, 1);
  const Value* found = find_value(run, *self.as<Dict>(), *given[0]);
  return found ? *found : given[1] ? *given[1] : Value(None{});
}

template <View::Part part>
Value dict_view(Rendering& run, const Value& self, const Arguments& arguments) {
  const Parameters given(run, arguments, "this method of a dict", {});
  return View{*self.as<Dict>(), part};
}

}  // namespace

const MethodTable& list_methods() {
  static const MethodTable kMethods = {{"copy", container_copy}, {"count", list_count}, {"index", list_index}};
  return kMethods;
}

const MethodTable& dict_methods() {
  static const MethodTable kMethods = {{"copy", container_copy},
                                       {"get", dict_get},
                                       {"items", dict_view<View::Part::items>},
                                       {"keys", dict_view<View::Part::keys>},
                                       {"values", dict_view<View::Part::values>}};
  return kMethods;
}

}  // namespace prism::jinja
