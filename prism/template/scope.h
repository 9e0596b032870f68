// Variables of a part of a template, and of the parts around it.
//
//   auto inner = std::make_shared<Scope>(outer);
//   inner->set(symbol, value);
//   const Value* found = inner->find(run, symbol);
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "prism/template/syntax/syntax.h"
#include "prism/template/values/rendering.h"

namespace prism::jinja {

class Scope {
 public:
  explicit Scope(std::shared_ptr<Scope> parent) : parent_(std::move(parent)) {}

  /// The value of a variable here or in the scopes around, or null.
  const Value* find(Rendering& run, Symbol symbol) const;
  void set(Symbol symbol, Value value);
  void clear() { variables_.clear(); }

  /// Whether Rendering::keep() has it.
  bool is_kept = false;

 private:
  std::shared_ptr<Scope> parent_;
  std::vector<std::pair<Symbol, Value>> variables_;
};

using ScopePointer = std::shared_ptr<Scope>;

}  // namespace prism::jinja
