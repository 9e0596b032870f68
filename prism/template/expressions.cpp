// Evaluator::evaluate(): one function for each kind of expression.
#include "prism/template/evaluator.h"
#include "prism/template/library/functions.h"
#include "prism/template/library/members.h"
#include "prism/template/values/arithmetic.h"
#include "prism/template/values/operations.h"
#include "prism/template/values/print.h"

namespace prism::jinja {
namespace {

/// Evaluates the node of an expression.
class ExpressionVisitor {
 public:
  ExpressionVisitor(Evaluator& evaluator, const ScopePointer& scope)
      : evaluator_(evaluator), run_(evaluator.run()), scope_(scope) {}

  Value operator()(const Literal& node) { return node.value; }

  Value operator()(const Name& node) {
    if (const Value* found = scope_->find(run_, node.symbol)) return *found;
    const std::string& name = evaluator_.name_of(node.symbol);
    if (auto function = find_function(run_, name)) return *function;
    return run_.undefined(fmt::format("`{}`, which is undefined", name.substr(0, 60)));
  }

  Value operator()(const ListDisplay& node) {
    Values items;
    items.reserve(node.items.size());
    for (const auto& item : node.items) items.push_back(evaluate(item));
    return run_.list(std::move(items), node.is_tuple);
  }

  Value operator()(const DictDisplay& node) {
    std::vector<std::pair<Value, Value>> entries;
    for (const auto& [key, value] : node.entries) {
      Value first = evaluate(key);
      entries.emplace_back(std::move(first), evaluate(value));
    }
    return run_.dict(entries);
  }

  Value operator()(const Unary& node) {
    const Value operand = evaluate(node.operand);
    if (node.sign == '!') return !operand.truth();
    if (node.sign == '-') return negated(run_, operand);
    check_number(run_, operand, "+");
    return operand.whole() ? Value(*operand.whole()) : operand;
  }

  Value operator()(const Arithmetic& node) {
    Value value = evaluate(node.first);
    for (const auto& [operation, operand] : node.rest) value = arithmetic(run_, operation, value, evaluate(operand));
    return value;
  }

  Value operator()(const Concatenation& node) {
    std::string made;
    for (const auto& part : node.parts) {
      const Value value = evaluate(part);
      const auto* text = value.as<Text>();
      const std::string& bytes = text ? text->bytes() : (printed_ = printed(run_, value));
      run_.check_size(static_cast<int64_t>(made.size() + bytes.size()));
      made += bytes;
    }
    return run_.text(std::move(made));
  }

  Value operator()(const Compare& node) {
    Value left = evaluate(node.first);
    for (const auto& [comparison, operand] : node.rest) {
      Value right = evaluate(operand);
      if (!compare(comparison, left, right)) return false;
      left = std::move(right);
    }
    return true;
  }

  Value operator()(const Logic& node) {
    Value value;
    for (const auto& part : node.parts) {
      value = evaluate(part);
      if (value.truth() != node.is_and) break;
    }
    return value;
  }

  Value operator()(const Conditional& node) {
    if (evaluate(node.condition).truth()) return evaluate(node.then);
    if (node.otherwise) return evaluate(node.otherwise);
    return run_.undefined("an `if` without `else`, which is undefined");
  }

  Value operator()(const Member& node) { return get_member(run_, evaluate(node.object), node.name); }

  Value operator()(const Item& node) {
    const Value object = evaluate(node.object);
    return get_item(run_, object, evaluate(node.index));
  }

  Value operator()(const SliceItem& node) {
    const Value object = evaluate(node.object);
    Slice slice;
    if (node.start) slice.start = evaluate(node.start);
    if (node.stop) slice.stop = evaluate(node.stop);
    if (node.step) slice.step = evaluate(node.step);
    return slice_of(run_, object, slice);
  }

  Value operator()(const Call& node) { return evaluate_call(evaluator_, node, scope_, nullptr); }

  Value operator()(const FilterCall& node) {
    const Value input = node.input ? evaluate(node.input) : std::move(evaluator_.filter_input);
    if (!node.filter) run_.refuse("{}", unknown_name(filters(), node.name, "filter"));
    return node.filter(run_, input, evaluate_arguments(evaluator_, node.arguments, scope_));
  }

  Value operator()(const TestCall& node) {
    const Value input = evaluate(node.input);
    if (!node.test) run_.refuse("{}", unknown_name(value_tests(), node.name, "test"));
    return node.test(run_, input, evaluate_arguments(evaluator_, node.arguments, scope_));
  }

 private:
  Value evaluate(const ExpressionPointer& expression) { return evaluator_.evaluate(*expression, scope_); }

  bool compare(Comparison comparison, const Value& left, const Value& right) {
    switch (comparison) {
      case Comparison::equal:
        return equal(run_, left, right);
      case Comparison::not_equal:
        return !equal(run_, left, right);
      case Comparison::less:
        return less(run_, left, right);
      case Comparison::less_equal:
        return less(run_, left, right) || equal(run_, left, right);
      case Comparison::greater:
        return less(run_, right, left);
      case Comparison::greater_equal:
        return less(run_, right, left) || equal(run_, left, right);
      case Comparison::in:
        return contains(run_, right, left);
      default:
        return !contains(run_, right, left);
    }
  }

  Evaluator& evaluator_;
  Rendering& run_;
  const ScopePointer& scope_;
  std::string printed_;
};

}  // namespace

Value Evaluator::evaluate(const Expression& expression, const ScopePointer& scope) {
  if (const auto* literal = std::get_if<Literal>(&expression.node)) return literal->value;
  const EvaluationLevel level(run_);
  run_.work();
  run_.line = expression.line;
  return std::visit(ExpressionVisitor(*this, scope), expression.node);
}

Arguments evaluate_arguments(Evaluator& evaluator, const CallArguments& arguments, const ScopePointer& scope) {
  Arguments values;
  values.positional.reserve(arguments.positional.size());
  for (const auto& argument : arguments.positional) values.positional.push_back(evaluator.evaluate(*argument, scope));
  for (const auto& [name, argument] : arguments.named)
    values.named.emplace_back(name, evaluator.evaluate(*argument, scope));
  return values;
}

Value call_value(Rendering& run, const Value& function, const Arguments& arguments) {
  const auto* object = function.as<ObjectPointer>();
  if (!object) run.refuse("expected a function before the parentheses; found {}; correct its name.", function.kind());
  const ObjectPointer kept = *object;  // the call may assign to the variable that holds it
  const int line = run.line;
  Value result = kept->call(run, arguments);
  run.line = line;
  return result;
}

Value evaluate_call(Evaluator& evaluator, const Call& call, const ScopePointer& scope, const Value* caller) {
  Rendering& run = evaluator.run();
  const auto arguments_given = [&] {
    Arguments arguments = evaluate_arguments(evaluator, call.arguments, scope);
    if (caller) arguments.named.emplace_back("caller", *caller);
    return arguments;
  };
  if (const auto* member = std::get_if<Member>(&call.function->node)) {
    const Value object = evaluator.evaluate(*member->object, scope);
    if (const Method method = find_method(object, member->name)) {
      const Arguments arguments = arguments_given();
      run.line = call.function->line;
      return method(run, object, arguments);
    }
    const Value function = get_member(run, object, member->name);
    return call_value(run, function, arguments_given());
  }
  const Value function = evaluator.evaluate(*call.function, scope);
  const Arguments arguments = arguments_given();
  run.line = call.function->line;
  return call_value(run, function, arguments);
}

}  // namespace prism::jinja
