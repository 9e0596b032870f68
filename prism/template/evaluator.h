// Runs a syntax tree.
//
//   Evaluator(run, syntax).render(values);  // writes to run.output
#pragma once

#include "prism/core/json.h"
#include "prism/template/scope.h"
#include "prism/template/syntax/syntax.h"
#include "prism/template/values/rendering.h"

namespace prism::jinja {

/// What comes after a statement: the next one, or the end of the loop's iteration or of the loop.
enum class Flow { next, continue_loop, break_loop };

class Evaluator {
 public:
  Evaluator(Rendering& run, const Syntax& syntax);
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;
  /// Ends cycles between what the template made.
  ~Evaluator() { run_.clear(); }

  /// Renders the template with the members of an object as variables.
  void render(const Json& values);

  Value evaluate(const Expression& expression, const ScopePointer& scope);
  Flow execute(const Block& block, const ScopePointer& scope);

  /// Calls a macro whose definition is inside `closure`.
  Value call_macro(const Macro& macro, const ScopePointer& closure, const Arguments& arguments);

  Rendering& run() { return run_; }
  const std::string& name_of(Symbol symbol) const { return syntax_.names[static_cast<size_t>(symbol)]; }
  /// The symbols of `loop` and of the names that macros know; -1 for a name that the template does not use.
  Symbol loop_symbol = -1, caller_symbol = -1, kwargs_symbol = -1, varargs_symbol = -1;
  /// What a block of filter or set hands to its innermost filter.
  Value filter_input;

 private:
  Rendering& run_;
  const Syntax& syntax_;
};

/// Counts one level of evaluation for its life time. @throws InputError beyond kMaxEvaluationDepth
class EvaluationLevel {
 public:
  explicit EvaluationLevel(Rendering& run) : run_(run) {
    if (++run.depth <= kMaxEvaluationDepth) return;
    --run.depth;
    run.refuse("expected at most {} levels of macros and expressions; found more; stop the recursion earlier.",
               kMaxEvaluationDepth);
  }
  EvaluationLevel(const EvaluationLevel&) = delete;
  EvaluationLevel& operator=(const EvaluationLevel&) = delete;
  ~EvaluationLevel() { --run_.depth; }

 private:
  Rendering& run_;
};

/// Calls a function, method or macro. @throws InputError for other values
Value call_value(Rendering& run, const Value& function, const Arguments& arguments);

/// Evaluates the arguments of a call.
Arguments evaluate_arguments(Evaluator& evaluator, const CallArguments& arguments, const ScopePointer& scope);

/// The call of a call block, with its caller as one more argument.
Value evaluate_call(Evaluator& evaluator, const Call& call, const ScopePointer& scope, const Value* caller);

}  // namespace prism::jinja
