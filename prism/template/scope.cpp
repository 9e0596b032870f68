#include "prism/template/scope.h"

#include <algorithm>

namespace prism::jinja {

const Value* Scope::find(Rendering& run, Symbol symbol) const {
  for (const Scope* scope = this; scope; scope = scope->parent_.get()) {
    run.work(scope->variables_.size());
    for (const auto& [name, value] : scope->variables_) {
      if (name == symbol) return &value;
    }
  }
  return nullptr;
}

void Scope::set(Symbol symbol, Value value) {
  const auto known =
      std::find_if(variables_.begin(), variables_.end(), [&](const auto& row) { return row.first == symbol; });
  if (known != variables_.end()) {
    known->second = std::move(value);
  } else {
    variables_.emplace_back(symbol, std::move(value));
  }
}

}  // namespace prism::jinja
