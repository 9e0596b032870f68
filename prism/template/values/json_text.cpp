// json_text(): Python's json.dumps().
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "prism/template/values/characters.h"
#include "prism/template/values/operations.h"
#include "prism/template/values/print.h"

namespace prism::jinja {
namespace {

class JsonWriter {
 public:
  JsonWriter(Rendering& run, const JsonStyle& style) : run_(run), style_(style) {}

  void write(const Value& value, int level) {
    run_.work();
    run_.check_size(static_cast<int64_t>(made.size()));
    if (const auto* text = value.as<Text>()) {
      write_text(text->bytes());
    } else if (const auto* list = value.as<List>()) {
      write_list(*list, level);
    } else if (const auto* dict = value.as<Dict>()) {
      write_dict(*dict, level);
    } else if (const auto scalar = scalar_text(value)) {
      made += *scalar;
    } else {
      run_.refuse("expected a value that JSON can hold; found {}; convert it, for example with the filter list.",
                  value.kind());
    }
  }

  std::string made;

 private:
  static std::optional<std::string> scalar_text(const Value& value) {
    if (value.is<None>()) return "null";
    if (const auto* truth = value.as<bool>()) return *truth ? "true" : "false";
    if (const auto* whole = value.as<int64_t>()) return fmt::to_string(*whole);
    const auto* real = value.as<double>();
    if (!real) return std::nullopt;
    if (std::isnan(*real)) return "NaN";
    if (std::isinf(*real)) return *real > 0 ? "Infinity" : "-Infinity";
    return float_text(*real);
  }

  void write_unit(uint32_t unit) { made += fmt::format("\\u{:04x}", unit); }

  void write_text(const std::string& bytes) {
    run_.work(bytes.size());
    made += '"';
    for (size_t at = 0; at < bytes.size();) {
      const size_t start = at;
      const auto character = static_cast<uint32_t>(next_character(bytes, &at));
      static constexpr std::string_view kNamed = "\"\\\n\r\t\f\b", kLetters = "\"\\nrtfb";
      const size_t named = character < 0x80 ? kNamed.find(static_cast<char>(character)) : std::string_view::npos;
      if (named != std::string_view::npos) {
        made += '\\';
        made += kLetters[named];
      } else if (character >= 0x20 && (character < 0x80 || !style_.ensure_ascii)) {
        made.append(bytes, start, at - start);
      } else if (character < 0x10000) {
        write_unit(character);
      } else {
        write_unit(0xD800 + ((character - 0x10000) >> 10));
        write_unit(0xDC00 + ((character - 0x10000) & 0x3FF));
      }
    }
    made += '"';
  }

  void begin_item(bool is_first, int level) {
    if (!is_first) made += style_.item_separator;
    begin_line(level);
  }

  void begin_line(int level) {
    if (!style_.has_indent) return;
    run_.check_size(static_cast<int64_t>(made.size() + style_.indent.size() * static_cast<size_t>(level)));
    run_.work(style_.indent.size() * static_cast<size_t>(level));
    made += '\n';
    for (int i = 0; i < level; ++i) made += style_.indent;
  }

  void write_list(const List& list, int level) {
    made += '[';
    bool is_first = true;
    for (const auto& item : list.items()) {
      begin_item(is_first, level + 1);
      is_first = false;
      write(item, level + 1);
    }
    if (!is_first) begin_line(level);
    made += ']';
  }

  void write_dict(const Dict& dict, int level) {
    if (!style_.sort_keys) return write_entries(dict.entries(), level);
    auto sorted = dict.entries();
    std::stable_sort(sorted.begin(), sorted.end(),
                     [&](const auto& left, const auto& right) { return less(run_, left.first, right.first); });
    write_entries(sorted, level);
  }

  void write_entries(const std::vector<std::pair<Value, Value>>& entries, int level) {
    made += '{';
    bool is_first = true;
    for (const auto& [key, value] : entries) {
      begin_item(is_first, level + 1);
      is_first = false;
      const auto* text = key.as<Text>();
      const auto scalar = scalar_text(key);
      if (!text && !scalar) run_.refuse("expected keys that JSON can hold; found {}; use texts.", key.kind());
      write_text(text ? text->bytes() : *scalar);
      made += style_.key_separator;
      write(value, level + 1);
    }
    if (!is_first) begin_line(level);
    made += '}';
  }

  Rendering& run_;
  const JsonStyle& style_;
};

}  // namespace

std::string json_text(Rendering& run, const Value& value, const JsonStyle& style) {
  JsonWriter writer(run, style);
  writer.write(value, 0);
  run.check_size(static_cast<int64_t>(writer.made.size()));
  return std::move(writer.made);
}

}  // namespace prism::jinja
