#include "prism/template/values/rendering.h"

#include <algorithm>

#include "prism/template/values/operations.h"

namespace prism::jinja {

void Rendering::refuse_steps() const {
  refuse("expected a rendering of at most {} steps; found one that goes on; shorten the template or its input.",
         limits_.steps);
}

void Rendering::refuse_size() const {
  refuse("expected texts and lists of at most {} bytes; found a longer one; shorten the template or its input.",
         limits_.value_bytes);
}

void Rendering::spend(size_t bytes) {
  work(bytes);
  check_size(static_cast<int64_t>(bytes));
  bytes_ += static_cast<int64_t>(bytes);
  if (bytes_ > limits_.total_bytes)
    refuse("expected values of at most {} bytes in total; found more; shorten the template or its input.",
           limits_.total_bytes);
}

Value Rendering::text(std::string bytes, bool safe) {
  spend(bytes.size() + sizeof(TextData));
  return make_text(std::move(bytes), safe);
}

Value Rendering::list(Values items, bool is_tuple) {
  spend(items.size() * sizeof(Value) + sizeof(ListData));
  int inside = 0;
  for (const auto& item : items) inside = std::max(inside, item.depth());
  const int depth_of_list = deeper(inside);
  return List{std::make_shared<ListData>(ListData{std::move(items), depth_of_list}), is_tuple};
}

Value Rendering::dict(const std::vector<std::pair<Value, Value>>& entries) {
  // An entry of the index takes about as much memory as a value.
  spend(entries.size() * 4 * sizeof(Value) + sizeof(DictData));
  auto data = std::make_shared<DictData>();
  int inside = 0;
  for (const auto& [key, value] : entries) {
    const size_t hash = hash_of(*this, key);
    inside = std::max({inside, key.depth(), value.depth()});
    if (auto* known = find_entry(*this, *data, key, hash)) {
      known->second = value;
    } else {
      data->index.emplace(hash, data->entries.size());
      data->entries.emplace_back(key, value);
    }
  }
  data->depth = deeper(inside);
  return Dict{std::move(data)};
}

Value Rendering::generator(int inside, std::function<std::optional<Value>(Rendering&)> next) {
  spend(sizeof(GeneratorData) + 2 * sizeof(Value));
  return Generator{std::make_shared<GeneratorData>(GeneratorData{std::move(next), deeper(inside)})};
}

Value Rendering::function(std::string kind, Function::Body body, int inside) {
  spend(sizeof(Function) + 2 * sizeof(Value));
  return ObjectPointer(std::make_shared<Function>(std::move(kind), std::move(body), deeper(inside)));
}

Value Rendering::undefined(std::string why) {
  spend(why.size() + sizeof(std::string));
  return Undefined{std::make_shared<const std::string>(std::move(why))};
}

int Rendering::deeper(int inside) const {
  if (inside >= kMaxValueDepth)
    refuse("expected values of at most {} levels; found more; nest lists and dicts less deeply.", kMaxValueDepth);
  return inside + 1;
}

void Rendering::write(std::string_view bytes) {
  check_size(static_cast<int64_t>(output->size() + bytes.size()));
  spend(bytes.size());
  output->append(bytes);
}

void Rendering::keep(std::shared_ptr<void> kept, std::function<void()> clear) {
  if (static_cast<int64_t>(kept_.size()) >= kMaxObjects)
    refuse("expected at most {} namespaces, macros and loops with loop.changed(); found more; make them outside loops.",
           kMaxObjects);
  kept_.emplace_back(std::move(kept), std::move(clear));
}

void Rendering::clear() {
  for (auto& [kept, clear_one] : kept_) clear_one();
  kept_.clear();
}

}  // namespace prism::jinja
