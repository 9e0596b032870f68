// What the parsers of expressions and statements share: the tokens, the names seen so far and the depth.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "prism/template/syntax/lexer.h"
#include "prism/template/syntax/syntax.h"

namespace prism::jinja {

inline constexpr int kMaxSyntaxDepth = 200;  ///< of expressions and blocks within each other

class ParserState {
 public:
  explicit ParserState(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& current() const { return tokens_[at_]; }
  const Token& following() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token take() { return at_ + 1 < tokens_.size() ? tokens_[at_++] : tokens_[at_]; }
  bool skip_sign(std::string_view sign);
  bool skip_name(std::string_view name);
  void expect_sign(std::string_view sign);
  void expect_name(std::string_view name);
  void expect(Token::Kind kind, std::string_view what);
  /// Takes a name of any kind.
  std::string take_name(std::string_view what);

  /// Throws "line N: expected ...; found the current token; way out".
  [[noreturn]] void refuse(std::string_view expected, std::string_view way_out) const;

  Symbol symbol_of(const std::string& name);

  std::vector<std::string> names;  ///< by symbol
  int depth = 0;
  int loops = 0;                                     ///< loops around the current place, for `loop`
  int breakable = 0;                                 ///< loops around it in the same macro, for break and continue
  bool is_optional = false;                          ///< in an if: an unknown filter is an error only when reached
  std::vector<std::pair<int, std::string>> unknown;  ///< filters and tests: line and message
  std::vector<Macro*> macros;                        ///< around the current place

 private:
  std::vector<Token> tokens_;
  size_t at_ = 0;
  std::unordered_map<std::string, Symbol> symbols_;
};

/// Throws the InputError for more than kMaxSyntaxDepth levels.
[[noreturn]] void refuse_depth(int line);

/// Counts one level of the syntax for its life time. @throws InputError beyond kMaxSyntaxDepth
class SyntaxLevel {
 public:
  explicit SyntaxLevel(ParserState& state);
  SyntaxLevel(const SyntaxLevel&) = delete;
  SyntaxLevel& operator=(const SyntaxLevel&) = delete;
  ~SyntaxLevel() { --state_.depth; }

 private:
  ParserState& state_;
};

/// Parses one expression. @param with_conditional  also a if b else c
ExpressionPointer parse_expression(ParserState& state, bool with_conditional = true);

/// Parses expressions with commas between them into a tuple, or a single one without a comma.
ExpressionPointer parse_tuple(ParserState& state, bool with_conditional = true);

/// Parses `| name(arguments)` as often as it occurs. @param starts  the first one has no |
ExpressionPointer parse_filters(ParserState& state, ExpressionPointer input, bool starts = false);

/// Parses what an assignment assigns to. @param with_attributes  also namespace attributes
Target parse_target(ParserState& state, bool with_attributes);

}  // namespace prism::jinja
