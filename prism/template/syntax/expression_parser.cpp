// Expressions, by recursive descent with the precedence of Jinja2: if, or, and, not, comparisons, + -, ~, * / // %,
// **, signs, and then members, items, calls, filters and tests.
#include <algorithm>
#include <array>
#include <utility>

#include "prism/core/text/names.h"
#include "prism/template/syntax/parser_state.h"

namespace prism::jinja {
namespace {

using Kind = Token::Kind;

ExpressionPointer make(int line, auto node) {
  auto expression = std::make_unique<Expression>();
  expression->node = std::move(node);
  expression->line = line;
  expression->height = 1 + height_inside(*expression);
  if (expression->height > kMaxSyntaxDepth) refuse_depth(line);
  return expression;
}

ExpressionPointer parse_unary(ParserState& state, bool with_filters);

bool is_tuple_end(const ParserState& state) {
  const Token& token = state.current();
  return token.kind == Kind::variable_end || token.kind == Kind::block_end || token.is_sign(")");
}

/// The items of a tuple up to its end; a comma anywhere makes it one.
ExpressionPointer parse_tuple_items(ParserState& state, bool with_conditional, bool may_be_empty) {
  const int line = state.current().line;
  ListDisplay tuple;
  tuple.is_tuple = true;
  bool has_comma = false;
  while (!is_tuple_end(state)) {
    tuple.items.push_back(parse_expression(state, with_conditional));
    if (!state.skip_sign(",")) break;
    has_comma = true;
  }
  if (!has_comma && tuple.items.size() == 1) return std::move(tuple.items[0]);
  if (tuple.items.empty() && !may_be_empty) state.refuse("an expression", "write one");
  return make(line, std::move(tuple));
}

/// Parses items between commas, the last of which may have one, and the closing sign.
template <class ParseItem>
void parse_items(ParserState& state, const char* closing, ParseItem parse_item) {
  for (bool is_first = true; !state.current().is_sign(closing); is_first = false) {
    if (!is_first) state.expect_sign(",");
    if (state.current().is_sign(closing)) break;
    parse_item();
  }
  state.expect_sign(closing);
}

ExpressionPointer parse_list(ParserState& state) {
  const int line = state.take().line;
  ListDisplay list;
  parse_items(state, "]", [&] { list.items.push_back(parse_expression(state)); });
  return make(line, std::move(list));
}

ExpressionPointer parse_dict(ParserState& state) {
  const int line = state.take().line;
  DictDisplay dict;
  parse_items(state, "}", [&] {
    auto key = parse_expression(state);
    state.expect_sign(":");
    dict.entries.emplace_back(std::move(key), parse_expression(state));
  });
  return make(line, std::move(dict));
}

/// The constant that a name stands for, if it does.
std::optional<Value> constant_of(const std::string& name) {
  if (name == "true" || name == "True") return Value(true);
  if (name == "false" || name == "False") return Value(false);
  if (name == "none" || name == "None") return Value(None{});
  return std::nullopt;
}

ExpressionPointer parse_name(ParserState& state) {
  const Token token = state.take();
  if (auto constant = constant_of(token.text)) return make(token.line, Literal{*constant});
  if (token.text == "self")
    refuse_syntax(token.line, "expected a name other than self, which refers to blocks; found `self`; rename it.");
  for (Macro* macro : state.macros) {
    macro->uses_caller |= token.text == "caller";
    macro->uses_varargs |= token.text == "varargs";
    macro->uses_kwargs |= token.text == "kwargs";
  }
  return make(token.line, Name{state.symbol_of(token.text)});
}

ExpressionPointer parse_primary(ParserState& state) {
  const Token& token = state.current();
  const int line = token.line;
  if (token.kind == Kind::name) return parse_name(state);
  if (token.kind == Kind::string) {
    std::string text;
    while (state.current().kind == Kind::string) text += state.take().text;
    return make(line, Literal{make_text(std::move(text))});
  }
  if (token.kind == Kind::integer) return make(line, Literal{std::get<int64_t>(state.take().number)});
  if (token.kind == Kind::real) return make(line, Literal{std::get<double>(state.take().number)});
  if (state.skip_sign("(")) {
    auto inner = parse_tuple_items(state, true, true);
    state.expect_sign(")");
    return inner;
  }
  if (token.is_sign("[")) return parse_list(state);
  if (token.is_sign("{")) return parse_dict(state);
  state.refuse("an expression", "write a value");
}

CallArguments parse_arguments(ParserState& state) {
  CallArguments arguments;
  state.expect_sign("(");
  bool is_first = true;
  while (!state.current().is_sign(")")) {
    if (!is_first) state.expect_sign(",");
    if (state.current().is_sign(")")) break;
    is_first = false;
    if (state.current().is_sign("*") || state.current().is_sign("**"))
      state.refuse("arguments one by one", "write them out, since unpacking is not supported");
    if (state.current().kind == Kind::name && state.following().is_sign("=")) {
      std::string name = state.take().text;
      state.take();
      const auto is_same = [&](const auto& other) { return other.first == name; };
      if (std::any_of(arguments.named.begin(), arguments.named.end(), is_same))
        state.refuse(fmt::format("the argument {} once", name), "remove one of them");
      arguments.named.emplace_back(std::move(name), parse_expression(state));
    } else {
      if (!arguments.named.empty()) state.refuse("arguments with names last", "name this argument");
      arguments.positional.push_back(parse_expression(state));
    }
  }
  state.expect_sign(")");
  return arguments;
}

/// What is inside the brackets of object[...].
ExpressionPointer parse_item(ParserState& state, ExpressionPointer object, int line) {
  const auto at_end = [&] { return state.current().is_sign("]") || state.current().is_sign(","); };
  ListDisplay indices;
  SliceItem slice;
  bool is_slice = false;
  while (!state.current().is_sign("]")) {
    if (!indices.items.empty() || is_slice) state.expect_sign(",");
    if (is_slice) state.refuse("one slice", "slice once");
    ExpressionPointer start = state.current().is_sign(":") ? nullptr : parse_expression(state);
    if (!state.skip_sign(":")) {
      indices.items.push_back(std::move(start));
      continue;
    }
    if (!indices.items.empty()) state.refuse("one slice", "slice once");
    is_slice = true;
    slice.start = std::move(start);
    if (!state.current().is_sign(":") && !at_end()) slice.stop = parse_expression(state);
    if (state.skip_sign(":") && !at_end()) slice.step = parse_expression(state);
  }
  state.expect_sign("]");
  if (is_slice) {
    slice.object = std::move(object);
    return make(line, std::move(slice));
  }
  if (indices.items.size() == 1) return make(line, Item{std::move(object), std::move(indices.items[0])});
  indices.is_tuple = true;
  return make(line, Item{std::move(object), make(line, std::move(indices))});
}

ExpressionPointer parse_subscript(ParserState& state, ExpressionPointer object) {
  const Token token = state.take();
  if (token.text == "[") return parse_item(state, std::move(object), token.line);
  if (state.current().kind == Kind::integer) {
    auto index = make(token.line, Literal{std::get<int64_t>(state.take().number)});
    return make(token.line, Item{std::move(object), std::move(index)});
  }
  std::string name = state.take_name("a name or number after the dot");
  return make(token.line, Member{std::move(object), std::move(name)});
}

bool starts_argument(const Token& token) {
  switch (token.kind) {
    case Kind::name:
      return token.text != "else" && token.text != "or" && token.text != "and";
    case Kind::string:
    case Kind::integer:
    case Kind::real:
      return true;
    default:
      return token.is_sign("[") || token.is_sign("{");
  }
}

/// Members, items and calls after an expression.
ExpressionPointer parse_postfix(ParserState& state, ExpressionPointer value) {
  while (true) {
    const Token& token = state.current();
    if (token.is_sign(".") || token.is_sign("[")) {
      value = parse_subscript(state, std::move(value));
    } else if (token.is_sign("(")) {
      const int line = token.line;
      value = make(line, Call{std::move(value), parse_arguments(state)});
    } else {
      break;
    }
  }
  return value;
}

std::string parse_dotted_name(ParserState& state, std::string_view what) {
  std::string name = state.take_name(what);
  while (state.skip_sign(".")) name += "." + state.take_name(what);
  return name;
}

template <class Row>
Row find_row(ParserState& state, const std::map<std::string, Row>& table, const std::string& name,
             std::string_view what) {
  const auto row = table.find(name);
  if (row != table.end()) return row->second;
  if (!state.is_optional) state.unknown.emplace_back(state.current().line, unknown_name(table, name, what));
  return nullptr;
}

ExpressionPointer parse_test(ParserState& state, ExpressionPointer value) {
  const int line = state.take().line;
  const bool negated = state.skip_name("not");
  TestCall call;
  call.name = parse_dotted_name(state, "the name of a test");
  call.test = find_row(state, value_tests(), call.name, "test");
  if (state.current().is_sign("(")) {
    call.arguments = parse_arguments(state);
  } else if (starts_argument(state.current())) {
    if (state.current().is_name("is")) state.refuse("one test", "join tests with `and`");
    call.arguments.positional.push_back(parse_postfix(state, parse_primary(state)));
  }
  call.input = std::move(value);
  auto test = make(line, std::move(call));
  return negated ? make(line, Unary{'!', std::move(test)}) : std::move(test);
}

ExpressionPointer parse_filters_and_tests(ParserState& state, ExpressionPointer value) {
  while (true) {
    const Token& token = state.current();
    if (token.is_sign("|")) {
      value = parse_filters(state, std::move(value));
    } else if (token.is_name("is")) {
      value = parse_test(state, std::move(value));
    } else if (token.is_sign("(")) {
      const int line = token.line;
      value = make(line, Call{std::move(value), parse_arguments(state)});
    } else {
      break;
    }
  }
  return value;
}

ExpressionPointer parse_unary(ParserState& state, bool with_filters) {
  const SyntaxLevel level(state);
  const Token& token = state.current();
  const int line = token.line;
  ExpressionPointer value;
  if (token.is_sign("-") || token.is_sign("+")) {
    const char sign = state.take().text[0];
    value = make(line, Unary{sign, parse_unary(state, false)});
  } else {
    value = parse_primary(state);
  }
  value = parse_postfix(state, std::move(value));
  return with_filters ? parse_filters_and_tests(state, std::move(value)) : std::move(value);
}

/// Operands with operators of one precedence between them.
template <size_t count>
ExpressionPointer parse_operators(ParserState& state, ExpressionPointer (*parse_operand)(ParserState&),
                                  const std::pair<std::string_view, Operator> (&operators)[count]) {
  const int line = state.current().line;
  Arithmetic chain;
  chain.first = parse_operand(state);
  while (true) {
    const auto found = std::find_if(std::begin(operators), std::end(operators),
                                    [&](const auto& row) { return state.current().is_sign(row.first); });
    if (found == std::end(operators)) break;
    state.take();
    chain.rest.emplace_back(found->second, parse_operand(state));
  }
  return chain.rest.empty() ? std::move(chain.first) : make(line, std::move(chain));
}

ExpressionPointer parse_operand_of_power(ParserState& state) {
  return parse_unary(state, true);
}

ExpressionPointer parse_power(ParserState& state) {
  return parse_operators(state, parse_operand_of_power, {{"**", Operator::power}});
}

ExpressionPointer parse_product(ParserState& state) {
  return parse_operators(
      state, parse_power,
      {{"*", Operator::multiply}, {"/", Operator::divide}, {"//", Operator::floor_divide}, {"%", Operator::modulo}});
}

ExpressionPointer parse_concatenation(ParserState& state) {
  const int line = state.current().line;
  Concatenation chain;
  chain.parts.push_back(parse_product(state));
  while (state.skip_sign("~")) chain.parts.push_back(parse_product(state));
  return chain.parts.size() == 1 ? std::move(chain.parts[0]) : make(line, std::move(chain));
}

ExpressionPointer parse_sum(ParserState& state) {
  return parse_operators(state, parse_concatenation, {{"+", Operator::add}, {"-", Operator::subtract}});
}

std::optional<Comparison> take_comparison(ParserState& state) {
  static constexpr std::pair<std::string_view, Comparison> kComparisons[] = {
      {"==", Comparison::equal},      {"!=", Comparison::not_equal}, {"<", Comparison::less},
      {"<=", Comparison::less_equal}, {">", Comparison::greater},    {">=", Comparison::greater_equal}};
  for (const auto& [sign, comparison] : kComparisons) {
    if (state.skip_sign(sign)) return comparison;
  }
  if (state.skip_name("in")) return Comparison::in;
  if (!state.current().is_name("not") || !state.following().is_name("in")) return std::nullopt;
  state.take();
  state.take();
  return Comparison::not_in;
}

ExpressionPointer parse_comparison(ParserState& state) {
  const int line = state.current().line;
  Compare chain;
  chain.first = parse_sum(state);
  while (const auto comparison = take_comparison(state)) chain.rest.emplace_back(*comparison, parse_sum(state));
  return chain.rest.empty() ? std::move(chain.first) : make(line, std::move(chain));
}

ExpressionPointer parse_not(ParserState& state) {
  const int line = state.current().line;
  if (!state.skip_name("not")) return parse_comparison(state);
  const SyntaxLevel level(state);
  return make(line, Unary{'!', parse_not(state)});
}

ExpressionPointer parse_logic(ParserState& state, bool is_and) {
  const auto parse_part = [&] { return is_and ? parse_not(state) : parse_logic(state, true); };
  const int line = state.current().line;
  Logic chain;
  chain.is_and = is_and;
  chain.parts.push_back(parse_part());
  while (state.skip_name(is_and ? "and" : "or")) chain.parts.push_back(parse_part());
  return chain.parts.size() == 1 ? std::move(chain.parts[0]) : make(line, std::move(chain));
}

}  // namespace

ExpressionPointer parse_expression(ParserState& state, bool with_conditional) {
  const SyntaxLevel level(state);
  const int line = state.current().line;
  const bool was_optional = state.is_optional;
  const size_t unknown_before = state.unknown.size();
  auto value = parse_logic(state, false);
  while (with_conditional && state.skip_name("if")) {
    Conditional conditional;
    state.is_optional = true;
    state.unknown.resize(unknown_before);  // what came before the `if` is optional as well
    conditional.then = std::move(value);
    conditional.condition = parse_logic(state, false);
    if (state.skip_name("else")) conditional.otherwise = parse_expression(state);
    state.is_optional = was_optional;
    value = make(line, std::move(conditional));
  }
  return value;
}

ExpressionPointer parse_tuple(ParserState& state, bool with_conditional) {
  return parse_tuple_items(state, with_conditional, false);
}

ExpressionPointer parse_filters(ParserState& state, ExpressionPointer input, bool starts) {
  while (starts || state.current().is_sign("|")) {
    if (!starts) state.take();
    starts = false;
    const int line = state.current().line;
    FilterCall call;
    call.name = parse_dotted_name(state, "the name of a filter");
    call.filter = find_row(state, filters(), call.name, "filter");
    if (state.current().is_sign("(")) call.arguments = parse_arguments(state);
    call.input = std::move(input);
    input = make(line, std::move(call));
  }
  return input;
}

Target parse_target(ParserState& state, bool with_attributes) {
  const SyntaxLevel level(state);
  const auto parse_one = [&]() -> Target {
    if (state.skip_sign("(")) {
      Target inner = parse_target(state, with_attributes);
      state.expect_sign(")");
      return inner;
    }
    Target target;
    target.line = state.current().line;
    const std::string name = state.take_name("a name to assign to");
    if (constant_of(name))
      refuse_syntax(target.line, fmt::format("expected a name to assign to; found `{}`; rename it.", name));
    if (state.loops > 0 && name == "loop" && !state.current().is_sign("."))
      refuse_syntax(target.line, "expected another name than loop to assign to; found `loop`; rename it.");
    target.symbol = state.symbol_of(name);
    if (with_attributes && state.skip_sign(".")) target.attribute = state.take_name("the name of an attribute");
    return target;
  };
  Target first = parse_one();
  if (!state.current().is_sign(",")) return first;
  Target tuple;
  tuple.line = first.line;
  tuple.parts.emplace();
  tuple.parts->push_back(std::move(first));
  while (state.skip_sign(",")) {
    if (is_tuple_end(state) || state.current().is_name("in") || state.current().is_sign("=")) break;
    tuple.parts->push_back(parse_one());
  }
  return tuple;
}

}  // namespace prism::jinja
