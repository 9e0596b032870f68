#include "prism/template/syntax/parser_state.h"

namespace prism::jinja {

bool ParserState::skip_sign(std::string_view sign) {
  if (!current().is_sign(sign)) return false;
  take();
  return true;
}

bool ParserState::skip_name(std::string_view name) {
  if (!current().is_name(name)) return false;
  take();
  return true;
}

void ParserState::expect_sign(std::string_view sign) {
  if (!skip_sign(sign)) refuse(fmt::format("`{}`", sign), "add it");
}

void ParserState::expect_name(std::string_view name) {
  if (!skip_name(name)) refuse(fmt::format("`{}`", name), "add it");
}

void ParserState::expect(Token::Kind kind, std::string_view what) {
  if (current().kind != kind) refuse(what, "correct the tag");
  take();
}

std::string ParserState::take_name(std::string_view what) {
  if (current().kind != Token::Kind::name) refuse(what, "write a name");
  return take().text;
}

void ParserState::refuse(std::string_view expected, std::string_view way_out) const {
  refuse_syntax(current().line, fmt::format("expected {}; found {}; {}.", expected, current().description(), way_out));
}

Symbol ParserState::symbol_of(const std::string& name) {
  const auto [row, is_new] = symbols_.emplace(name, static_cast<Symbol>(names.size()));
  if (is_new) names.push_back(name);
  return row->second;
}

SyntaxLevel::SyntaxLevel(ParserState& state) : state_(state) {
  if (++state.depth <= kMaxSyntaxDepth) return;
  --state.depth;
  refuse_depth(state.current().line);
}

void refuse_depth(int line) {
  refuse_syntax(line, fmt::format("expected at most {} levels of expressions and blocks; found more; simplify the "
                                  "template.",
                                  kMaxSyntaxDepth));
}

}  // namespace prism::jinja
