#include "prism/evaluation/tasks/row_values.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/text/printable.h"
#include "prism/core/text/utf8.h"
#include "prism/template/library/text_pieces.h"
#include "prism/template/values/characters.h"
#include "prism/tokenizer/split/unicode_classes.h"

namespace prism {
namespace {

[[noreturn]] void fail_value(const Json& value, const char* name, const char* expected) {
  throw InputError(kEvaluation, fmt::format("expected {} as {}; found {}; correct the row.", expected, name,
                                            value.is_structured() ? value.type_name() : short_line(value.dump(), 60)));
}

std::string text_in(const Json& value, const char* name) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number()) return value.dump();
  fail_value(value, name, "text");
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

/// Drops the blanks inside of marks that stand around something: ( a ) becomes (a).
std::string without_inner_blanks(std::string_view text, char open, char close) {
  std::string made;
  while (true) {
    const size_t begin = text.find(open);
    const size_t end = begin == std::string_view::npos ? begin : text.find(close, begin + 1);
    if (end == std::string_view::npos) return made.append(text);
    made.append(text.substr(0, begin + 1));
    made.append(jinja::stripped(text.substr(begin + 1, end - begin - 1)));
    made += close;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

const Json& member_of(const Json& row, const char* name) {
  const auto found = row.is_object() ? row.find(name) : row.end();
  PRISM_CHECK(row.is_object() && found != row.end(), kEvaluation,
              "expected a row with the member {}; found none; correct the row, or name the file of another task.",
              name);
  return *found;
}

std::string text_of(const Json& row, const char* name) {
  return text_in(member_of(row, name), name);
}

int64_t number_of(const Json& row, const char* name) {
  const auto& value = member_of(row, name);
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  if (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{1} << 62)
    fail_value(value, name, "a whole number");
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_string()) {
    const auto text = value.get<std::string>();
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size()) return number;
  }
  fail_value(value, name, "a whole number");
}

bool truth_of(const Json& row, const char* name) {
  const auto& value = member_of(row, name);
  if (!value.is_boolean()) fail_value(value, name, "true or false");
  return value.get<bool>();
}

std::vector<std::string> texts_of(const Json& row, const char* name) {
  const auto& value = member_of(row, name);
  if (!value.is_array()) return {text_in(value, name)};
  return list_of(row, name);
}

std::vector<std::string> list_of(const Json& row, const char* name) {
  const auto& value = member_of(row, name);
  if (!value.is_array()) fail_value(value, name, "a list of texts");
  std::vector<std::string> texts;
  for (const auto& each : value) texts.push_back(text_in(each, name));
  return texts;
}

int64_t count_words(std::string_view text) {
  const uint8_t* classes = character_classes();
  int64_t words = 0;
  bool is_inside = false;
  const auto take = [&](bool is_space) {
    words += !is_space && !is_inside;
    is_inside = !is_space;
  };
  while (!text.empty()) {
    const size_t well_formed = std::min(find_invalid_utf8(text), text.size());
    for (size_t at = 0; at < well_formed;) {
      const Character character = decode_character(text, at);
      take((classes[character.code] & kSpace) != 0);
      at += character.length;
    }
    text.remove_prefix(well_formed);
    if (text.empty()) break;
    take(/*is_space=*/false);
    text.remove_prefix(1);
  }
  return words;
}

int64_t words_between_blanks(const std::string& text) {
  int64_t words = 1;
  bool was_space = false;
  for (size_t at = 0; at < text.size();) {
    const bool is_space = jinja::is_space(jinja::next_character(text, &at));
    words += is_space && !was_space;
    was_space = is_space;
  }
  return words;
}

std::string without_wikihow_marks(const std::string& text) {
  std::string made(jinja::stripped(text));
  replace_all(made, " [title]", ". ");
  for (size_t at = 0; (at = made.find('[', at)) != std::string::npos;) {
    const size_t end = made.find_first_of("]\n", at);
    if (end != std::string::npos && made[end] == ']') {
      made.erase(at, end - at + 1);
    } else {
      ++at;
    }
  }
  replace_all(made, "  ", " ");
  return made;
}

std::string without_wikitext_marks(std::string text) {
  replace_all(text, "s '", "s'");
  for (size_t at = 0; (at = text.find("/' ", at)) != std::string::npos; ++at)
    if (at + 4 < text.size() && text[at + 3] >= '0' && text[at + 3] <= '9' && text[at + 4] == '/')
      text.replace(at, 5, "/'[0-9]/");  // as the harness has it
  for (const auto& [from, to] : {std::pair{" @-@ ", "-"},
                                 {" @,@ ", ","},
                                 {" @.@ ", "."},
                                 {" : ", ": "},
                                 {" ; ", "; "},
                                 {" . ", ". "},
                                 {" ! ", "! "},
                                 {" ? ", "? "},
                                 {" , ", ", "}})
    replace_all(text, from, to);
  for (const auto& [open, close] : {std::pair{'(', ')'}, {'[', ']'}, {'{', '}'}, {'"', '"'}, {'\'', '\''}})
    text = without_inner_blanks(text, open, close);
  for (const auto& [from, to] : {std::pair{"= = = =", "===="},
                                 {"= = =", "==="},
                                 {"= =", "=="},
                                 {" \u00B0 ", "\u00B0"},
                                 {" \n", "\n"},
                                 {"\n ", "\n"},
                                 {" N ", " 1 "},
                                 {" 's", "'s"}})
    replace_all(text, from, to);
  return text;
}

}  // namespace prism
