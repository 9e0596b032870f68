// The filters that make text.
#include <algorithm>

#include "prism/template/library/filters.h"
#include "prism/template/library/members.h"
#include "prism/template/library/parameters.h"
#include "prism/template/library/text_pieces.h"
#include "prism/template/values/arithmetic.h"
#include "prism/template/values/characters.h"
#include "prism/template/values/format_text.h"
#include "prism/template/values/operations.h"
#include "prism/template/values/print.h"

namespace prism::jinja {
namespace {

template <std::string (*change)(std::string_view)>
Value filter_case(Rendering& run, const Value& input, const Arguments& arguments) {
  const Parameters given(run, arguments, "this filter", {});
  const Text text = soft_text(run, input);
  return run.text(change(text.bytes()), text.safe);
}

/// Jinja2's title: words begin after white space and any of -({[<.
Value filter_title(Rendering& run, const Value& input, const Arguments& arguments) {
  const Parameters given(run, arguments, "the filter title", {});
  const Text text = soft_text(run, input);
  const std::string& bytes = text.bytes();
  const auto separates = [](char32_t character) {
    return is_space(character) ||
           (character < 0x80 && std::string_view("-({[<").find(static_cast<char>(character)) != std::string_view::npos);
  };
  std::string made;
  for (size_t at = 0; at < bytes.size();) {
    const size_t start = at;
    const char32_t character = next_character(bytes, &at);
    made += upper_case(std::string_view(bytes).substr(start, at - start));
    if (separates(character)) continue;
    const size_t rest = at;
    for (size_t behind = at; at < bytes.size() && !separates(next_character(bytes, &behind)); at = behind) continue;
    made += lower_case(std::string_view(bytes).substr(rest, at - rest));
  }
  return run.text(std::move(made));
}

Value filter_trim(Rendering& run, const Value& input, const Arguments& arguments) {
  const Parameters given(run, arguments, "the filter trim", {"chars"});
  const Text text = soft_text(run, input);
  const std::string* characters = given.other_than_none(0) ? &given.text(0).bytes() : nullptr;
  return run.text(std::string(stripped(text.bytes(), characters, true, true)), text.safe);
}

Value filter_string(Rendering& run, const Value& input, const Arguments& arguments) {
  const Parameters given(run, arguments, "the filter string", {});
  return soft_text(run, input);
}

Value filter_safe(Rendering& run, const Value& input, const Arguments& arguments) {
  const Parameters given(run, arguments, "the filter safe", {});
  return Text{soft_text(run, input).data, true};
}

Value filter_escape(Rendering& run, const Value& input, const Arguments& arguments) {
  const Parameters given(run, arguments, "the filter escape", {});
  return escaped(run, input);
}

Value filter_force_escape(Rendering& run, const Value& input, const Arguments& arguments) {
  const Parameters given(run, arguments, "the filter forceescape", {});
  return escaped(run, Text{soft_text(run, input).data, false});
}

Value filter_replace(Rendering& run, const Value& input, const Arguments& arguments) {
  const Parameters given(run, arguments, "the filter replace", {"old", "new", "count"}, 2);
  const std::string old = printed(run, *given[0]), with = printed(run, *given[1]);
  const int64_t most = given.other_than_none(2) ? given.whole(2, -1) : -1;
  return run.text(replaced(run, soft_text(run, input).bytes(), old, with, most));
}

Value filter_indent(Rendering& run, const Value& input, const Arguments& arguments) {
  const Parameters given(run, arguments, "the filter indent", {"width", "first", "blank"});
  const auto* text = input.as<Text>();
  if (!text) run.refuse("expected text before the filter indent; found {}; convert it first.", input.kind());
  std::string indent;
  if (const auto* width = given[0] ? given[0]->as<Text>() : nullptr) {
    indent = width->bytes();
  } else {
    indent = padded(run, "", given.whole(0, 4), 0);
  }
  const bool indents_blank = given.truth(2, false);
  std::string made = given.truth(1, false) ? indent : "";
  const std::string with_end = text->bytes() + "\n";
  bool is_first = true;
  for (const auto& line : split_lines(with_end)) {
    run.check_size(static_cast<int64_t>(made.size() + indent.size() + line.size()));
    if (!is_first) made += '\n';
    if (!is_first && (indents_blank || !line.empty())) made += indent;
    made += line;
    is_first = false;
  }
  return run.text(std::move(made), text->safe);
}

Value filter_center(Rendering& run, const Value& input, const Arguments& arguments) {
  const Parameters given(run, arguments, "the filter center", {"width"});
  const Text text = soft_text(run, input);
  const int64_t width = given.whole(0, 80);
  const int64_t missing = width <= text.characters() ? 0 : width - text.characters();
  const int64_t left = missing / 2 + (missing & width & 1);
  return run.text(padded(run, text.bytes(), left, missing - left), text.safe);
}

Value filter_truncate(Rendering& run, const Value& input, const Arguments& arguments) {
  const Parameters given(run, arguments, "the filter truncate", {"length", "killwords", "end", "leeway"});
  const auto* text = input.as<Text>();
  if (!text || text->safe)
    run.refuse("expected plain text before the filter truncate; found {}; convert it first.", input.kind());
  const std::string end = given[2] ? given.text(2).bytes() : "...";
  const auto end_size = static_cast<int64_t>(count_characters(end));
  const int64_t length = given.whole(0, 255), leeway = given.other_than_none(3) ? given.whole(3, 5) : 5;
  if (length < end_size || leeway < 0)
    run.refuse("expected a length of at least {} for truncate; found {}; use a larger one.", end_size, length);
  if (text->characters() - leeway <= length) return input;
  std::string_view kept = std::string_view(text->bytes())
                              .substr(0, offset_of_character(text->bytes(), static_cast<size_t>(length - end_size)));
  if (!given.truth(1, false)) {
    const size_t space = kept.rfind(' ');
    kept = kept.substr(0, space);
  }
  return run.text(std::string(kept) + end);
}

Value filter_word_count(Rendering& run, const Value& input, const Arguments& arguments) {
  const Parameters given(run, arguments, "the filter wordcount", {});
  const Text text = soft_text(run, input);
  int64_t words = 0;
  bool in_word = false;
  for (size_t at = 0; at < text.bytes().size();) {
    const char32_t character = next_character(text.bytes(), &at);
    const bool is_part = character == '_' || is_alphanumeric(character);
    words += is_part && !in_word ? 1 : 0;
    in_word = is_part;
  }
  return words;
}

Value filter_format(Rendering& run, const Value& input, const Arguments& arguments) {
  const Text text = soft_text(run, input);
  if (!arguments.named.empty() || text.safe)
    run.refuse("expected values in order after the filter format; found names or safe text; use ~ instead.");
  return run.text(format_percent(run, text.bytes(), arguments.positional));
}

Value filter_join(Rendering& run, const Value& input, const Arguments& arguments) {
  const Parameters given(run, arguments, "the filter join", {"d", "attribute"});
  const std::string separator = given[0] ? printed(run, *given[0]) : "";
  const Value* path = given.other_than_none(1);
  std::string made;
  bool is_first = true;
  Iterator items(input);
  while (auto item = items.next(run)) {
    if (path) item = get_path(run, *item, *path);
    const std::string text = printed(run, *item);
    run.check_size(static_cast<int64_t>(made.size() + separator.size() + text.size()));
    if (!is_first) made += separator;
    made += text;
    is_first = false;
  }
  return run.text(std::move(made));
}

/// The indent of tojson: a number of spaces, or text.
std::string indent_of(Rendering& run, const Value& value) {
  if (const auto* text = value.as<Text>()) return text->bytes();
  const auto width = value.whole();
  if (!width)
    run.refuse("expected a whole number or text as the indent of tojson; found {}; convert it.", value.kind());
  return padded(run, "", *width, 0);
}

Value filter_to_json(Rendering& run, const Value& input, const Arguments& arguments) {
  const Parameters given(run, arguments, "the filter tojson", {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ensure_ascii = given.truth(0, false);
  style.sort_keys = given.truth(3, false);
  if (const Value* indent = given.other_than_none(1)) {
    style.has_indent = true;
    style.indent = indent_of(run, *indent);
    style.item_separator = ",";
  }
  if (const Value* separators = given.other_than_none(2)) {
    const auto* list = separators->as<List>();
    if (!list || list->items().size() != 2 || !list->items()[0].is<Text>() || !list->items()[1].is<Text>())
      run.refuse("expected two texts as the separators of tojson; found {}; write (',', ':').", separators->kind());
    style.item_separator = list->items()[0].as<Text>()->bytes();
    style.key_separator = list->items()[1].as<Text>()->bytes();
  }
  return run.text(json_text(run, input, style));
}

}  // namespace

FilterTable text_filters() {
  return {{"capitalize", filter_case<capitalized>},
          {"center", filter_center},
          {"e", filter_escape},
          {"escape", filter_escape},
          {"forceescape", filter_force_escape},
          {"format", filter_format},
          {"indent", filter_indent},
          {"join", filter_join},
          {"lower", filter_case<lower_case>},
          {"replace", filter_replace},
          {"safe", filter_safe},
          {"string", filter_string},
          {"title", filter_title},
          {"tojson", filter_to_json},
          {"trim", filter_trim},
          {"truncate", filter_truncate},
          {"upper", filter_case<upper_case>},
          {"wordcount", filter_word_count}};
}

}  // namespace prism::jinja
