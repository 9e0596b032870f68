// Evaluator::execute(): one function for each kind of statement.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "prism/template/evaluator.h"
#include "prism/template/library/functions.h"
#include "prism/template/loop.h"
#include "prism/template/values/from_json.h"
#include "prism/template/values/operations.h"
#include "prism/template/values/print.h"

namespace prism::jinja {
namespace {

/// A macro with the variables around its definition.
class MacroObject : public Object {
 public:
  MacroObject(Evaluator& evaluator, const Macro& macro, ScopePointer closure)
      : evaluator_(evaluator), macro_(macro), closure_(std::move(closure)) {}

  std::string kind() const override { return "a macro"; }
  std::optional<Value> attribute(Rendering& run, const std::string& name) override {
    for (const char* member : {"arguments", "caller", "catch_kwargs", "catch_varargs", "explicit_caller", "name"})
      if (name == member) run.refuse("expected no member of a macro; found {}; write the template without it.", name);
    return std::nullopt;
  }
  bool is_callable() const override { return true; }
  Value call(Rendering&, const Arguments& arguments) override {
    return evaluator_.call_macro(macro_, closure_, arguments);
  }
  std::optional<std::string> print(Rendering&) const override { return fmt::format("<Macro '{}'>", macro_.name); }

 private:
  Evaluator& evaluator_;
  const Macro& macro_;
  ScopePointer closure_;
};

Value make_macro(Evaluator& evaluator, const Macro& macro, const ScopePointer& scope) {
  if (!scope->is_kept) {
    scope->is_kept = true;
    evaluator.run().keep(scope, [scope] { scope->clear(); });
  }
  return ObjectPointer(std::make_shared<MacroObject>(evaluator, macro, scope));
}

void assign(Evaluator& evaluator, const Target& target, const Value& value, const ScopePointer& scope) {
  Rendering& run = evaluator.run();
  if (target.parts) {
    const Values items = items_of(run, value);
    if (items.size() != target.parts->size())
      run.refuse("expected {} values to assign to {} names; found {}; name each of them.", target.parts->size(),
                 target.parts->size(), items.size());
    for (size_t i = 0; i < items.size(); ++i) assign(evaluator, (*target.parts)[i], items[i], scope);
  } else if (target.attribute) {
    const Value* object = scope->find(run, target.symbol);
    const auto* pointer = object ? object->as<ObjectPointer>() : nullptr;
    auto* space = pointer ? dynamic_cast<Namespace*>(pointer->get()) : nullptr;
    if (!space)
      run.refuse("expected a namespace to assign an attribute to; found {}; make {} one with namespace().",
                 object ? object->kind() : "an undefined value", evaluator.name_of(target.symbol).substr(0, 60));
    space->set(run, *target.attribute, value);
  } else {
    scope->set(target.symbol, value);
  }
}

/// Executes the node of a statement.
class StatementVisitor {
 public:
  StatementVisitor(Evaluator& evaluator, const ScopePointer& scope)
      : evaluator_(evaluator), run_(evaluator.run()), scope_(scope) {}

  Flow operator()(const Data& node) {
    run_.write(node.text);
    return Flow::next;
  }

  Flow operator()(const Output& node) {
    const Value value = evaluate(node.value);
    if (const auto* text = value.as<Text>()) {
      run_.write(text->bytes());
    } else {
      run_.write(printed(run_, value));
    }
    return Flow::next;
  }

  Flow operator()(const If& node) {
    for (const auto& [condition, body] : node.branches) {
      if (evaluate(condition).truth()) return evaluator_.execute(body, scope_);
    }
    return evaluator_.execute(node.otherwise, scope_);
  }

  Flow operator()(const For& node) {
    const Value items = evaluate(node.items);
    std::function<bool(const Value&)> accepts;
    if (node.condition) {
      accepts = [&evaluator = evaluator_, &node, scope = scope_](const Value& item) {
        const auto inner = std::make_shared<Scope>(scope);
        assign(evaluator, node.target, item, inner);
        return evaluator.evaluate(*node.condition, inner).truth();
      };
    }
    const auto loop = std::make_shared<Loop>(run_, items, std::move(accepts));
    // As in Jinja2: a loop in which no iteration came to its end takes the else branch.
    bool is_completed = false;
    while (const auto item = loop->next(run_)) {
      const auto inner = std::make_shared<Scope>(scope_);
      if (evaluator_.loop_symbol >= 0) inner->set(evaluator_.loop_symbol, ObjectPointer(loop));
      assign(evaluator_, node.target, *item, inner);
      const Flow flow = evaluator_.execute(node.body, inner);
      if (flow == Flow::break_loop) break;
      is_completed |= flow == Flow::next;
    }
    if (is_completed || node.otherwise.empty()) return Flow::next;
    return evaluator_.execute(node.otherwise, std::make_shared<Scope>(scope_));
  }

  Flow operator()(const Set& node) {
    assign(evaluator_, node.target, evaluate(node.value), scope_);
    return Flow::next;
  }

  Flow operator()(const SetBlock& node) {
    const auto inner = std::make_shared<Scope>(scope_);
    Value value;
    const Flow flow = captured(node.body, inner, &value);
    if (flow != Flow::next) return flow;
    if (node.filter) value = filtered(*node.filter, std::move(value), inner);
    assign(evaluator_, node.target, value, scope_);
    return Flow::next;
  }

  Flow operator()(const FilterBlock& node) {
    const auto inner = std::make_shared<Scope>(scope_);
    Value value;
    const Flow flow = captured(node.body, inner, &value);
    if (flow == Flow::next) run_.write(printed(run_, filtered(*node.filter, std::move(value), inner)));
    return flow;
  }

  Flow operator()(const Macro& node) {
    scope_->set(node.symbol, make_macro(evaluator_, node, scope_));
    return Flow::next;
  }

  Flow operator()(const CallBlock& node) {
    const Value caller = make_macro(evaluator_, node.caller, scope_);
    run_.write(printed(run_, evaluate_call(evaluator_, std::get<Call>(node.call->node), scope_, &caller)));
    return Flow::next;
  }

  Flow operator()(const With& node) {
    const auto inner = std::make_shared<Scope>(scope_);
    for (const auto& [target, value] : node.assignments) assign(evaluator_, target, evaluate(value), inner);
    return evaluator_.execute(node.body, inner);
  }

  Flow operator()(const Generation& node) {
    if (run_.generated && run_.is_captured)
      run_.refuse(
          "expected a generation block outside macros and other blocks that make text; found one inside; move "
          "it out.");
    const size_t begin = run_.output->size();
    const bool was_captured = std::exchange(run_.is_captured, true);
    evaluator_.execute(node.body, std::make_shared<Scope>(scope_));
    run_.is_captured = was_captured;
    if (run_.generated) run_.generated->push_back({begin, run_.output->size()});
    return Flow::next;
  }

  Flow operator()(const Break&) { return Flow::break_loop; }
  Flow operator()(const Continue&) { return Flow::continue_loop; }

 private:
  Value evaluate(const ExpressionPointer& expression) { return evaluator_.evaluate(*expression, scope_); }

  /// Executes a block and makes a text of what it writes, unless it leaves a loop.
  Flow captured(const Block& body, const ScopePointer& scope, Value* value) {
    Capture capture(run_);
    const Flow flow = evaluator_.execute(body, scope);
    if (flow == Flow::next) *value = run_.text(std::move(capture.text));
    return flow;
  }

  Value filtered(const Expression& filter, Value value, const ScopePointer& scope) {
    evaluator_.filter_input = std::move(value);
    return evaluator_.evaluate(filter, scope);
  }

  Evaluator& evaluator_;
  Rendering& run_;
  const ScopePointer& scope_;
};

/// Takes a named argument out of a list.
std::optional<Value> take_argument(std::vector<std::pair<std::string, Value>>& named, const std::string& name) {
  const auto row = std::find_if(named.begin(), named.end(), [&](const auto& other) { return other.first == name; });
  if (row == named.end()) return std::nullopt;
  Value value = std::move(row->second);
  named.erase(row);
  return value;
}

}  // namespace

Evaluator::Evaluator(Rendering& run, const Syntax& syntax) : run_(run), syntax_(syntax) {
  for (size_t i = 0; i < syntax.names.size(); ++i) {
    const auto symbol = static_cast<Symbol>(i);
    if (syntax.names[i] == "loop") loop_symbol = symbol;
    if (syntax.names[i] == "caller") caller_symbol = symbol;
    if (syntax.names[i] == "kwargs") kwargs_symbol = symbol;
    if (syntax.names[i] == "varargs") varargs_symbol = symbol;
  }
}

void Evaluator::render(const Json& values) {
  const auto globals = std::make_shared<Scope>(nullptr);
  for (size_t i = 0; i < syntax_.names.size(); ++i) {
    const auto member = values.find(syntax_.names[i]);
    if (member != values.end()) globals->set(static_cast<Symbol>(i), from_json(run_, *member));
  }
  execute(syntax_.body, std::make_shared<Scope>(globals));
}

Flow Evaluator::execute(const Block& block, const ScopePointer& scope) {
  if (block.empty()) return Flow::next;
  const EvaluationLevel level(run_);
  for (const auto& statement : block) {
    run_.work();
    run_.line = statement->line;
    const Flow flow = std::visit(StatementVisitor(*this, scope), statement->node);
    if (flow != Flow::next) return flow;
  }
  return Flow::next;
}

Value Evaluator::call_macro(const Macro& macro, const ScopePointer& closure, const Arguments& arguments) {
  const EvaluationLevel level(run_);
  const auto scope = std::make_shared<Scope>(closure);
  auto named = arguments.named;
  std::vector<bool> is_given(macro.parameters.size(), true);
  bool has_caller = false;
  for (size_t i = 0; i < macro.parameters.size(); ++i) {
    const Symbol symbol = macro.parameters[i].first;
    has_caller |= symbol == caller_symbol;
    if (i < arguments.positional.size()) {
      scope->set(symbol, arguments.positional[i]);
    } else if (auto value = take_argument(named, name_of(symbol))) {
      scope->set(symbol, std::move(*value));
    } else {
      is_given[i] = false;
      scope->set(symbol,
                 run_.undefined(fmt::format("the parameter {}, which was not given", name_of(symbol).substr(0, 60))));
    }
  }
  if (macro.uses_caller && !has_caller) {
    const auto caller = take_argument(named, "caller");
    scope->set(caller_symbol, caller ? *caller : run_.undefined("`caller` outside a call block, which is undefined"));
  }
  if (macro.uses_kwargs) {
    std::vector<std::pair<Value, Value>> entries;
    for (const auto& [name, value] : named) entries.emplace_back(run_.text(name), value);
    scope->set(kwargs_symbol, run_.dict(entries));
  } else if (!named.empty()) {
    run_.refuse("expected arguments that the macro {} knows; found {}; remove it.", macro.name.substr(0, 60),
                named[0].first.substr(0, 60));
  }
  const size_t taken = std::min(arguments.positional.size(), macro.parameters.size());
  if (macro.uses_varargs) {
    scope->set(varargs_symbol, run_.tuple(Values(arguments.positional.begin() + static_cast<ptrdiff_t>(taken),
                                                 arguments.positional.end())));
  } else if (taken < arguments.positional.size()) {
    run_.refuse("expected at most {} arguments of the macro {}; found {}; remove the others.", taken,
                macro.name.substr(0, 60), arguments.positional.size());
  }
  for (size_t i = 0; i < macro.parameters.size(); ++i) {
    const auto& [symbol, otherwise] = macro.parameters[i];
    if (!is_given[i] && otherwise) scope->set(symbol, evaluate(*otherwise, scope));
  }
  Capture capture(run_);
  execute(macro.body, scope);
  return run_.text(std::move(capture.text));
}

}  // namespace prism::jinja
