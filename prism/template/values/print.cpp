#include "prism/template/values/print.h"

#include <fmt/format.h>

#include <cmath>

#include "prism/template/values/characters.h"
#include "prism/template/values/operations.h"

namespace prism::jinja {
namespace {

void append_represented(Rendering& run, std::string& made, const Value& value);

/// A text in quotes, as Python's repr() writes it: double quotes only around text with single quotes alone.
void append_quoted(std::string& made, const std::string& bytes) {
  const bool has_single = bytes.find('\'') != std::string::npos, has_double = bytes.find('"') != std::string::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  made += quote;
  for (size_t at = 0; at < bytes.size();) {
    const size_t start = at;
    const char32_t character = next_character(bytes, &at);
    if (character == static_cast<char32_t>(quote) || character == '\\') {
      made += '\\';
      made += static_cast<char>(character);
    } else if (character == '\n') {
      made += "\\n";
    } else if (character == '\r') {
      made += "\\r";
    } else if (character == '\t') {
      made += "\\t";
    } else if (is_printable(character)) {
      made.append(bytes, start, at - start);
    } else {
      const auto number = static_cast<uint32_t>(character);
      made += number < 0x100     ? fmt::format("\\x{:02x}", number)
              : number < 0x10000 ? fmt::format("\\u{:04x}", number)
                                 : fmt::format("\\U{:08x}", number);
    }
  }
  made += quote;
}

void append_list(Rendering& run, std::string& made, const List& list) {
  made += list.is_tuple ? '(' : '[';
  const char* separator = "";
  for (const auto& item : list.items()) {
    made += separator;
    append_represented(run, made, item);
    separator = ", ";
  }
  if (list.is_tuple && list.items().size() == 1) made += ',';
  made += list.is_tuple ? ')' : ']';
}

void append_dict(Rendering& run, std::string& made, const Dict& dict) {
  made += '{';
  const char* separator = "";
  for (const auto& [key, value] : dict.entries()) {
    made += separator;
    append_represented(run, made, key);
    made += ": ";
    append_represented(run, made, value);
    separator = ", ";
  }
  made += '}';
}

void append_view(Rendering& run, std::string& made, const View& view) {
  static constexpr const char* kNames[] = {"dict_keys([", "dict_values([", "dict_items(["};
  made += kNames[static_cast<int>(view.part)];
  for (size_t i = 0; i < view.dict.entries().size(); ++i) {
    if (i > 0) made += ", ";
    append_represented(run, made, view_item(run, view, i));
  }
  made += "])";
}

void append_represented(Rendering& run, std::string& made, const Value& value) {
  run.check_size(static_cast<int64_t>(made.size()));
  if (const auto* text = value.as<Text>()) {
    run.work(text->bytes().size());
    if (text->safe) made += "Markup(";
    append_quoted(made, text->bytes());
    if (text->safe) made += ')';
    return;
  }
  run.work();
  if (const auto* list = value.as<List>()) return append_list(run, made, *list);
  if (const auto* dict = value.as<Dict>()) return append_dict(run, made, *dict);
  if (const auto* view = value.as<View>()) return append_view(run, made, *view);
  if (value.is<Undefined>()) {
    made += "Undefined";
  } else if (value.is<None>()) {
    made += "None";
  } else if (const auto* truth = value.as<bool>()) {
    made += *truth ? "True" : "False";
  } else if (const auto* whole = value.as<int64_t>()) {
    made += fmt::to_string(*whole);
  } else if (const auto* real = value.as<double>()) {
    made += float_text(*real);
  } else if (const auto* range = value.as<Range>()) {
    made += fmt::format("range({}, {}", range->start, range->stop);
    made += range->step == 1 ? ")" : fmt::format(", {})", range->step);
  } else {
    const auto* object = value.as<ObjectPointer>();
    const auto name = object ? (*object)->print(run) : std::nullopt;
    if (!name)
      run.refuse("expected a value that can be printed; found {}; convert it to a list or text.", value.kind());
    made += *name;
  }
}

}  // namespace

std::string printed(Rendering& run, const Value& value) {
  run.work();
  if (const auto* text = value.as<Text>()) {
    run.work(text->bytes().size());
    return text->bytes();
  }
  if (value.is<Undefined>()) return "";
  return represented(run, value);
}

std::string represented(Rendering& run, const Value& value) {
  std::string made;
  append_represented(run, made, value);
  run.check_size(static_cast<int64_t>(made.size()));
  return made;
}

std::string float_text(double number) {
  if (std::isnan(number)) return "nan";
  std::string text = fmt::format("{}", number);
  if (text.find_first_of(".ein") == std::string::npos) text += ".0";
  return text;
}

}  // namespace prism::jinja
