#include "prism/template/syntax/parser.h"

#include <algorithm>
#include <initializer_list>
#include <map>

#include "prism/core/text/printable.h"
#include "prism/template/syntax/parser_state.h"

namespace prism::jinja {
namespace {

using Ends = std::initializer_list<std::string_view>;

/// Sets a variable for its life time.
template <class Type>
class Setting {
 public:
  Setting(Type& variable, Type value) : variable_(variable), before_(variable) { variable = value; }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;
  ~Setting() { variable_ = before_; }

 private:
  Type& variable_;
  Type before_;
};

class TemplateParser {
 public:
  explicit TemplateParser(std::vector<Token> tokens) : state_(std::move(tokens)) {}

  Syntax parse() {
    Syntax syntax;
    syntax.body = parse_block({});
    if (!state_.unknown.empty()) refuse_syntax(state_.unknown[0].first, state_.unknown[0].second);
    syntax.names = std::move(state_.names);
    return syntax;
  }

 private:
  /// Statements up to a tag that begins with one of `ends`, whose name is the current token then.
  Block parse_block(Ends ends) {
    const SyntaxLevel level(state_);
    Block block;
    while (true) {
      const Token& token = state_.current();
      const int line = token.line;
      if (token.kind == Token::Kind::end) {
        if (ends.size() > 0) state_.refuse(names_of_ends(ends), "close the block");
        return block;
      }
      if (token.kind == Token::Kind::data) {
        add(block, line, Data{state_.take().text});
      } else if (token.kind == Token::Kind::variable_begin) {
        state_.take();
        add(block, line, Output{parse_tuple(state_)});
        state_.expect(Token::Kind::variable_end, "`}}`");
      } else {
        state_.expect(Token::Kind::block_begin, "a tag");
        const Token& name = state_.current();
        if (std::any_of(ends.begin(), ends.end(), [&](std::string_view end) { return name.is_name(end); }))
          return block;
        parse_statement(block, ends);
        state_.expect(Token::Kind::block_end, "`%}`");
      }
    }
  }

  static std::string names_of_ends(Ends ends) {
    std::string names;
    for (const auto& end : ends) names += fmt::format("{}`{}`", names.empty() ? "" : " or ", end);
    return names;
  }

  static void add(Block& block, int line, auto node) {
    auto statement = std::make_unique<Statement>();
    statement->node = std::move(node);
    statement->line = line;
    block.push_back(std::move(statement));
  }

  /// The statements after the current tag, up to one of `ends`, whose name is taken.
  Block parse_body(Ends ends, std::string* end = nullptr) {
    state_.skip_sign(":");  // Python's colon is allowed
    state_.expect(Token::Kind::block_end, "`%}`");
    Block block = parse_block(ends);
    const std::string name = state_.take().text;
    if (end) *end = name;
    return block;
  }

  void parse_statement(Block& block, Ends ends) {
    using Parse = void (TemplateParser::*)(Block&, int);
    static const std::map<std::string_view, Parse> kTags = {{"for", &TemplateParser::parse_for},
                                                            {"if", &TemplateParser::parse_if},
                                                            {"set", &TemplateParser::parse_set},
                                                            {"macro", &TemplateParser::parse_macro_tag},
                                                            {"call", &TemplateParser::parse_call},
                                                            {"filter", &TemplateParser::parse_filter},
                                                            {"with", &TemplateParser::parse_with},
                                                            {"print", &TemplateParser::parse_print},
                                                            {"break", &TemplateParser::parse_loop_control},
                                                            {"continue", &TemplateParser::parse_loop_control},
                                                            {"generation", &TemplateParser::parse_generation}};
    const int line = state_.current().line;
    const std::string name = state_.current().text;
    const auto tag = state_.current().kind == Token::Kind::name ? kTags.find(name) : kTags.end();
    if (tag == kTags.end()) {
      if (ends.size() > 0 && name.starts_with("end")) state_.refuse(names_of_ends(ends), "close the inner block first");
      state_.refuse(
          "one of the tags break, call, continue, filter, for, generation, if, macro, print, raw, set and with",
          "write the template without it");
    }
    (this->*tag->second)(block, line);
  }

  void parse_for(Block& block, int line) {
    state_.take();
    For loop;
    {
      const Setting inside(state_.loops, state_.loops + 1);
      loop.target = parse_target(state_, false);
    }
    state_.expect_name("in");
    loop.items = parse_tuple(state_, false);
    const Setting no_longer_optional(state_.is_optional, false);
    const Setting inside(state_.loops, state_.loops + 1);
    if (state_.skip_name("if")) loop.condition = parse_expression(state_);
    if (state_.current().is_name("recursive"))
      state_.refuse("a loop that is not recursive", "call a macro that calls itself");
    std::string end;
    {
      const Setting breakable(state_.breakable, state_.breakable + 1);
      loop.body = parse_body({"else", "endfor"}, &end);
    }
    if (end == "else") loop.otherwise = parse_body({"endfor"});
    add(block, line, std::move(loop));
  }

  void parse_if(Block& block, int line) {
    const Setting optional(state_.is_optional, true);
    If choice;
    std::string end = "elif";
    state_.take();
    while (end == "elif") {
      auto condition = parse_tuple(state_, false);
      choice.branches.emplace_back(std::move(condition), parse_body({"elif", "else", "endif"}, &end));
    }
    if (end == "else") choice.otherwise = parse_body({"endif"});
    add(block, line, std::move(choice));
  }

  void parse_set(Block& block, int line) {
    state_.take();
    Target target = parse_target(state_, true);
    if (state_.skip_sign("=")) return add(block, line, Set{std::move(target), parse_tuple(state_)});
    const Setting no_longer_optional(state_.is_optional, false);
    auto filter = parse_filters(state_, nullptr);
    add(block, line, SetBlock{std::move(target), std::move(filter), parse_body({"endset"})});
  }

  /// Parameters with their defaults, in parentheses.
  void parse_parameters(Macro& macro) {
    state_.expect_sign("(");
    while (!state_.current().is_sign(")")) {
      if (!macro.parameters.empty()) state_.expect_sign(",");
      const Symbol symbol = state_.symbol_of(state_.take_name("the name of a parameter"));
      const auto is_same = [&](const auto& other) { return other.first == symbol; };
      if (std::any_of(macro.parameters.begin(), macro.parameters.end(), is_same))
        state_.refuse("parameters with different names", "rename one of them");
      ExpressionPointer otherwise;
      if (state_.skip_sign("=")) {
        otherwise = parse_expression(state_);
      } else if (!macro.parameters.empty() && macro.parameters.back().second) {
        state_.refuse("a default for each parameter after one with a default", "add it");
      }
      macro.parameters.emplace_back(symbol, std::move(otherwise));
    }
    state_.expect_sign(")");
  }

  Block parse_macro_body(Macro& macro, Ends ends) {
    const Setting no_longer_optional(state_.is_optional, false);
    const Setting breakable(state_.breakable, 0);
    state_.macros.push_back(&macro);
    Block body = parse_body(ends);
    state_.macros.pop_back();
    return body;
  }

  void parse_macro_tag(Block& block, int line) {
    state_.take();
    Macro macro;
    macro.name = state_.take_name("the name of a macro");
    macro.symbol = state_.symbol_of(macro.name);
    parse_parameters(macro);
    macro.body = parse_macro_body(macro, {"endmacro"});
    add(block, line, std::move(macro));
  }

  void parse_call(Block& block, int line) {
    state_.take();
    CallBlock call;
    call.caller.name = "caller";
    if (state_.current().is_sign("(")) parse_parameters(call.caller);
    call.call = parse_expression(state_);
    if (!std::holds_alternative<Call>(call.call->node)) state_.refuse("a call of a macro", "call one");
    call.caller.body = parse_macro_body(call.caller, {"endcall"});
    add(block, line, std::move(call));
  }

  void parse_filter(Block& block, int line) {
    state_.take();
    const Setting no_longer_optional(state_.is_optional, false);
    auto filter = parse_filters(state_, nullptr, true);
    add(block, line, FilterBlock{std::move(filter), parse_body({"endfilter"})});
  }

  void parse_with(Block& block, int line) {
    state_.take();
    With with;
    while (state_.current().kind != Token::Kind::block_end) {
      if (!with.assignments.empty()) state_.expect_sign(",");
      Target target = parse_target(state_, false);
      state_.expect_sign("=");
      with.assignments.emplace_back(std::move(target), parse_expression(state_));
    }
    const Setting no_longer_optional(state_.is_optional, false);
    with.body = parse_body({"endwith"});
    add(block, line, std::move(with));
  }

  void parse_print(Block& block, int line) {
    state_.take();
    for (bool is_first = true; state_.current().kind != Token::Kind::block_end; is_first = false) {
      if (!is_first) state_.expect_sign(",");
      add(block, line, Output{parse_expression(state_)});
    }
  }

  void parse_loop_control(Block& block, int line) {
    if (state_.breakable == 0) state_.refuse("this tag inside a loop only", "remove it");
    if (state_.take().text == "break") {
      add(block, line, Break{});
    } else {
      add(block, line, Continue{});
    }
  }

  void parse_generation(Block& block, int line) {
    state_.take();
    const Setting no_longer_optional(state_.is_optional, false);
    const Setting breakable(state_.breakable, 0);
    add(block, line, Generation{parse_body({"endgeneration"})});
  }

  ParserState state_;
};

}  // namespace

Syntax parse_template(std::string_view source) {
  return TemplateParser(tokenize(source)).parse();
}

}  // namespace prism::jinja
