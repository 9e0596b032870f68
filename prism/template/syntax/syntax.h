// The syntax tree of a template.
//
//   const Syntax tree = parse_template(source);
//   for (const auto& statement : tree.body) ...
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "prism/template/library/filters.h"
#include "prism/template/library/value_tests.h"
#include "prism/template/values/arithmetic.h"
#include "prism/template/values/value.h"

namespace prism::jinja {

/// A name of a variable, as its place in Syntax::names.
using Symbol = int;

struct Expression;
using ExpressionPointer = std::unique_ptr<Expression>;
using Expressions = std::vector<ExpressionPointer>;

struct Literal {
  Value value;
};
struct Name {
  Symbol symbol = 0;
};
/// [a, b] or (a, b).
struct ListDisplay {
  Expressions items;
  bool is_tuple = false;
};
/// {a: b}.
struct DictDisplay {
  std::vector<std::pair<ExpressionPointer, ExpressionPointer>> entries;
};
/// -a, +a or not a.
struct Unary {
  char sign = '-';  ///< -, + or !
  ExpressionPointer operand;
};
/// a + b - c, of operators of one precedence, from left to right.
struct Arithmetic {
  ExpressionPointer first;
  std::vector<std::pair<Operator, ExpressionPointer>> rest;
};
/// a ~ b ~ c.
struct Concatenation {
  Expressions parts;
};
enum class Comparison { equal, not_equal, less, less_equal, greater, greater_equal, in, not_in };
/// a < b == c.
struct Compare {
  ExpressionPointer first;
  std::vector<std::pair<Comparison, ExpressionPointer>> rest;
};
/// a and b, or a or b.
struct Logic {
  bool is_and = false;
  Expressions parts;
};
/// a if b else c. `otherwise` may be null.
struct Conditional {
  ExpressionPointer condition, then, otherwise;
};
/// a.name.
struct Member {
  ExpressionPointer object;
  std::string name;
};
/// a[index].
struct Item {
  ExpressionPointer object, index;
};
/// a[start:stop:step], each of which may be null.
struct SliceItem {
  ExpressionPointer object, start, stop, step;
};
struct CallArguments {
  Expressions positional;
  std::vector<std::pair<std::string, ExpressionPointer>> named;
};
struct Call {
  ExpressionPointer function;
  CallArguments arguments;
};
/// input | name(arguments). In filter blocks the innermost input is null.
struct FilterCall {
  ExpressionPointer input;
  std::string name;
  Filter filter = nullptr;  ///< null if unknown, which is an error once it is reached
  CallArguments arguments;
};
/// input is name(arguments).
struct TestCall {
  ExpressionPointer input;
  std::string name;
  ValueTest test = nullptr;  ///< null if unknown
  CallArguments arguments;
};

struct Expression {
  std::variant<Literal, Name, ListDisplay, DictDisplay, Unary, Arithmetic, Concatenation, Compare, Logic, Conditional,
               Member, Item, SliceItem, Call, FilterCall, TestCall>
      node;
  int line = 1;
  int height = 1;  ///< levels of expressions, from 1 for a literal
};

/// The greatest height of the expressions directly inside one, 0 if there is none.
int height_inside(const Expression& expression);

/// What is assigned to: a name, a namespace's attribute, or a tuple of these.
struct Target {
  Symbol symbol = 0;
  std::optional<std::string> attribute = {};
  std::optional<std::vector<Target>> parts = {};
  int line = 1;
};

struct Statement;
using Block = std::vector<std::unique_ptr<Statement>>;

struct Data {
  std::string text;
};
struct Output {
  ExpressionPointer value;
};
struct For {
  Target target;
  ExpressionPointer items, condition;  ///< condition may be null
  Block body, otherwise;
};
struct If {
  std::vector<std::pair<ExpressionPointer, Block>> branches;
  Block otherwise;
};
struct Set {
  Target target;
  ExpressionPointer value;
};
struct SetBlock {
  Target target;
  ExpressionPointer filter;  ///< may be null
  Block body;
};
struct Macro {
  std::string name;
  Symbol symbol = 0;
  std::vector<std::pair<Symbol, ExpressionPointer>> parameters;  ///< with their defaults, which may be null
  Block body;
  bool uses_caller = false, uses_varargs = false, uses_kwargs = false;
};
struct CallBlock {
  Macro caller;
  ExpressionPointer call;  ///< a Call
};
struct FilterBlock {
  ExpressionPointer filter;
  Block body;
};
struct With {
  std::vector<std::pair<Target, ExpressionPointer>> assignments;
  Block body;
};
/// What an assistant wrote, for training.
struct Generation {
  Block body;
};
struct Break {};
struct Continue {};

struct Statement {
  std::variant<Data, Output, For, If, Set, SetBlock, Macro, CallBlock, FilterBlock, With, Generation, Break, Continue>
      node;
  int line = 1;
};

struct Syntax {
  Block body;
  std::vector<std::string> names;  ///< by symbol
};

}  // namespace prism::jinja
