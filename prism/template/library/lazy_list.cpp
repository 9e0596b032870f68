#include "prism/template/library/lazy_list.h"

#include <algorithm>

namespace prism::jinja {
namespace {

/// State of the generator: what to compute the items from, then the items.
struct Pending {
  Value input;
  Arguments arguments;
  MakeItems make;
  Values items = {};
  size_t at = 0;
  bool is_made = false;

  std::optional<Value> next(Rendering& run) {
    if (!is_made) {
      is_made = true;
      items = make(run, input, arguments);
    }
    if (at == items.size()) return std::nullopt;
    return std::move(items[at++]);
  }
};

}  // namespace

Value lazy_list(Rendering& run, const Value& input, const Arguments& arguments, MakeItems make) {
  int inside = input.depth();
  for (const auto& value : arguments.positional) inside = std::max(inside, value.depth());
  for (const auto& [name, value] : arguments.named) inside = std::max(inside, value.depth());
  auto pending = std::make_shared<Pending>(Pending{input, arguments, make});
  // Items may be lists of what the input holds.
  return run.generator(run.deeper(inside), [pending](Rendering& later) { return pending->next(later); });
}

}  // namespace prism::jinja
