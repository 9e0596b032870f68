#include "prism/template/syntax/syntax.h"

#include <algorithm>

namespace prism::jinja {
namespace {

/// Takes the height of every expression that it is called with.
struct Highest {
  int height = 0;

  void operator()(const ExpressionPointer& one) {
    if (one) height = std::max(height, one->height);
  }
  void operator()(const Expressions& several) {
    for (const auto& one : several) (*this)(one);
  }
  template <class Key>
  void operator()(const std::vector<std::pair<Key, ExpressionPointer>>& rows) {
    for (const auto& row : rows) (*this)(row.second);
  }
  void operator()(const CallArguments& arguments) {
    (*this)(arguments.positional);
    (*this)(arguments.named);
  }

  void visit(const Literal&) {}
  void visit(const Name&) {}
  void visit(const ListDisplay& node) { (*this)(node.items); }
  void visit(const DictDisplay& node) {
    for (const auto& [key, value] : node.entries) (*this)(key), (*this)(value);
  }
  void visit(const Unary& node) { (*this)(node.operand); }
  void visit(const Arithmetic& node) { (*this)(node.first), (*this)(node.rest); }
  void visit(const Concatenation& node) { (*this)(node.parts); }
  void visit(const Compare& node) { (*this)(node.first), (*this)(node.rest); }
  void visit(const Logic& node) { (*this)(node.parts); }
  void visit(const Conditional& node) { (*this)(node.condition), (*this)(node.then), (*this)(node.otherwise); }
  void visit(const Member& node) { (*this)(node.object); }
  void visit(const Item& node) { (*this)(node.object), (*this)(node.index); }
  void visit(const SliceItem& node) {
    for (const auto* part : {&node.object, &node.start, &node.stop, &node.step}) (*this)(*part);
  }
  void visit(const Call& node) { (*this)(node.function), (*this)(node.arguments); }
  void visit(const FilterCall& node) { (*this)(node.input), (*this)(node.arguments); }
  void visit(const TestCall& node) { (*this)(node.input), (*this)(node.arguments); }
};

}  // namespace

int height_inside(const Expression& expression) {
  Highest highest;
  std::visit([&](const auto& node) { highest.visit(node); }, expression.node);
  return highest.height;
}

}  // namespace prism::jinja
