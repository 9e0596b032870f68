#include "prism/template/library/value_tests.h"

#include "prism/template/library/filters.h"
#include "prism/template/library/parameters.h"
#include "prism/template/values/arithmetic.h"
#include "prism/template/values/characters.h"
#include "prism/template/values/operations.h"
#include "prism/template/values/print.h"

namespace prism::jinja {
namespace {

/// A test without arguments.
template <bool (*is)(const Value&)>
bool test_kind(Rendering& run, const Value& input, const Arguments& arguments) {
  const Parameters given(run, arguments, "this test", {});
  return is(input);
}

template <class Type>
bool is_a(const Value& value) {
  return value.is<Type>();
}

bool is_defined(const Value& value) {
  return !value.is<Undefined>();
}
bool is_number(const Value& value) {
  return value.real().has_value();
}
bool is_true(const Value& value) {
  return value.is<bool>() && value.truth();
}
bool is_false(const Value& value) {
  return value.is<bool>() && !value.truth();
}
bool is_safe_text(const Value& value) {
  return value.is<Text>() && value.as<Text>()->safe;
}

bool is_sequence(const Value& value) {
  return value.is<Undefined>() || value.is<Text>() || value.is<List>() || value.is<Dict>() || value.is<Range>();
}

bool is_callable(const Value& value) {
  const auto* object = value.as<ObjectPointer>();
  return value.is<Undefined>() || (object && (*object)->is_callable());
}

/// The rest of a division by a number. @param divisor  not 0
bool divides(Rendering& run, const Value& input, const Value& divisor, int64_t rest) {
  return equal(run, arithmetic(run, Operator::modulo, input, divisor), rest);
}

bool test_even(Rendering& run, const Value& input, const Arguments& arguments) {
  const Parameters given(run, arguments, "the test even", {});
  return divides(run, input, int64_t{2}, 0);
}

bool test_odd(Rendering& run, const Value& input, const Arguments& arguments) {
  const Parameters given(run, arguments, "the test odd", {});
  return divides(run, input, int64_t{2}, 1);
}

bool test_divisible(Rendering& run, const Value& input, const Arguments& arguments) {
  const Parameters given(run, arguments, "the test divisibleby", {"num"}, 1);
  return divides(run, input, *given[0], 0);
}

/// Python's islower() or isupper() of the printed value.
template <bool (*has)(char32_t)>
bool test_case(Rendering& run, const Value& input, const Arguments& arguments) {
  const Parameters given(run, arguments, "this test", {});
  const std::string text = printed(run, input);
  bool found = false;
  for (size_t at = 0; at < text.size();) {
    const char32_t character = next_character(text, &at);
    if (has(character)) {
      found = true;
    } else if (is_cased(character)) {
      return false;
    }
  }
  return found;
}

/// Identity, which is defined for the constants only; numbers and texts may or may not be the same object in Python.
bool test_same(Rendering& run, const Value& input, const Arguments& arguments) {
  const Parameters given(run, arguments, "the test sameas", {"other"}, 1);
  const Value& other = *given[0];
  if (input.data().index() != other.data().index()) return false;
  if (input.is<bool>() || input.is<None>()) return equal(run, input, other);
  run.refuse("expected sameas to compare with true, false or none; found {}; use ==.", other.kind());
}

bool test_in(Rendering& run, const Value& input, const Arguments& arguments) {
  const Parameters given(run, arguments, "the test in", {"seq"}, 1);
  return contains(run, *given[0], input);
}

enum class Relation { equal, not_equal, less, less_equal, greater, greater_equal };

template <Relation relation>
bool test_relation(Rendering& run, const Value& input, const Arguments& arguments) {
  const Parameters given(run, arguments, "this test", {""}, 1);
  const Value& other = *given[0];
  if constexpr (relation == Relation::equal) return equal(run, input, other);
  if constexpr (relation == Relation::not_equal) return !equal(run, input, other);
  if constexpr (relation == Relation::less) return less(run, input, other);
  if constexpr (relation == Relation::less_equal) return less(run, input, other) || equal(run, input, other);
  if constexpr (relation == Relation::greater) return less(run, other, input);
  return less(run, other, input) || equal(run, input, other);
}

bool test_filter(Rendering& run, const Value& input, const Arguments& arguments) {
  const Parameters given(run, arguments, "the test filter", {});
  return input.is<Text>() && filters().contains(input.as<Text>()->bytes());
}

bool test_test(Rendering& run, const Value& input, const Arguments& arguments) {
  const Parameters given(run, arguments, "the test test", {});
  return input.is<Text>() && value_tests().contains(input.as<Text>()->bytes());
}

}  // namespace

const std::map<std::string, ValueTest>& value_tests() {
  static const std::map<std::string, ValueTest> kTests = {{"!=", test_relation<Relation::not_equal>},
                                                          {"<", test_relation<Relation::less>},
                                                          {"<=", test_relation<Relation::less_equal>},
                                                          {"==", test_relation<Relation::equal>},
                                                          {">", test_relation<Relation::greater>},
                                                          {">=", test_relation<Relation::greater_equal>},
                                                          {"boolean", test_kind<is_a<bool>>},
                                                          {"callable", test_kind<is_callable>},
                                                          {"defined", test_kind<is_defined>},
                                                          {"divisibleby", test_divisible},
                                                          {"eq", test_relation<Relation::equal>},
                                                          {"equalto", test_relation<Relation::equal>},
                                                          {"escaped", test_kind<is_safe_text>},
                                                          {"even", test_even},
                                                          {"false", test_kind<is_false>},
                                                          {"filter", test_filter},
                                                          {"float", test_kind<is_a<double>>},
                                                          {"ge", test_relation<Relation::greater_equal>},
                                                          {"greaterthan", test_relation<Relation::greater>},
                                                          {"gt", test_relation<Relation::greater>},
                                                          {"in", test_in},
                                                          {"integer", test_kind<is_a<int64_t>>},
                                                          {"iterable", test_kind<is_iterable>},
                                                          {"le", test_relation<Relation::less_equal>},
                                                          {"lessthan", test_relation<Relation::less>},
                                                          {"lower", test_case<is_lower>},
                                                          {"lt", test_relation<Relation::less>},
                                                          {"mapping", test_kind<is_a<Dict>>},
                                                          {"ne", test_relation<Relation::not_equal>},
                                                          {"none", test_kind<is_a<None>>},
                                                          {"number", test_kind<is_number>},
                                                          {"odd", test_odd},
                                                          {"sameas", test_same},
                                                          {"sequence", test_kind<is_sequence>},
                                                          {"string", test_kind<is_a<Text>>},
                                                          {"test", test_test},
                                                          {"true", test_kind<is_true>},
                                                          {"undefined", test_kind<is_a<Undefined>>},
                                                          {"upper", test_case<is_upper>}};
  return kTests;
}

}  // namespace prism::jinja
