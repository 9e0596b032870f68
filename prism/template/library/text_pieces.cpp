#include "prism/template/library/text_pieces.h"

#include <algorithm>
#include <set>

#include "prism/template/values/characters.h"
#include "prism/template/values/operations.h"
#include "prism/template/values/print.h"

namespace prism::jinja {
namespace {

/// Begin of the last character.
size_t last_character(std::string_view text) {
  size_t at = text.size() - 1;
  while (at > 0 && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

/// Size of the line break at the beginning, 0 if there is none.
size_t line_break_size(std::string_view text) {
  if (text.starts_with("\r\n")) return 2;
  size_t end = 0;
  const char32_t character = next_character(text, &end);
  const bool is_break = (character >= 0x0A && character <= 0x0D) || (character >= 0x1C && character <= 0x1E) ||
                        character == 0x85 || character == 0x2028 || character == 0x2029;
  return is_break ? end : 0;
}

}  // namespace

std::vector<std::string_view> split_at(std::string_view text, std::string_view separator, int64_t most) {
  std::vector<std::string_view> pieces;
  size_t start = 0;
  while (most < 0 || static_cast<int64_t>(pieces.size()) < most) {
    const size_t at = find_bytes(text, separator, start);
    if (at == std::string_view::npos) break;
    pieces.push_back(text.substr(start, at - start));
    start = at + separator.size();
  }
  pieces.push_back(text.substr(start));
  return pieces;
}

std::vector<std::string_view> split_from_end(std::string_view text, std::string_view separator, int64_t most) {
  // Occurrences from the end are those of the reversed separator in the reversed text.
  const std::string backwards(text.rbegin(), text.rend()), wanted(separator.rbegin(), separator.rend());
  auto pieces = split_at(backwards, wanted, most);
  for (auto& piece : pieces) {
    const auto offset = static_cast<size_t>(piece.data() - backwards.data());
    piece = text.substr(text.size() - offset - piece.size(), piece.size());
  }
  std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

std::vector<std::string_view> split_words(std::string_view text, int64_t most) {
  std::vector<std::string_view> words;
  text = text.substr(begin_without_space(text));
  while (!text.empty()) {
    if (most >= 0 && static_cast<int64_t>(words.size()) == most) {
      words.push_back(text);
      break;
    }
    size_t end = 0;
    for (size_t behind = 0; end < text.size() && !is_space(next_character(text, &behind)); end = behind) continue;
    words.push_back(text.substr(0, end));
    text = text.substr(end);
    text = text.substr(begin_without_space(text));
  }
  return words;
}

std::vector<std::string_view> split_words_from_end(std::string_view text, int64_t most) {
  std::vector<std::string_view> words;
  text = text.substr(0, end_without_space(text));
  while (!text.empty()) {
    if (most >= 0 && static_cast<int64_t>(words.size()) == most) {
      words.push_back(text);
      break;
    }
    size_t start = text.size();
    while (start > 0) {
      const size_t before = last_character(text.substr(0, start));
      size_t behind = before;
      if (is_space(next_character(text, &behind))) break;
      start = before;
    }
    words.push_back(text.substr(start));
    text = text.substr(0, start);
    text = text.substr(0, end_without_space(text));
  }
  std::reverse(words.begin(), words.end());
  return words;
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  size_t start = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t size = line_break_size(text.substr(at));
    if (size == 0) {
      next_character(text, &at);
      continue;
    }
    lines.push_back(text.substr(start, at - start + (keep_ends ? size : 0)));
    start = at += size;
  }
  if (start < text.size()) lines.push_back(text.substr(start));
  return lines;
}

std::string_view stripped(std::string_view text, const std::string* characters, bool at_begin, bool at_end) {
  std::set<char32_t> wanted;
  for (size_t at = 0; characters && at < characters->size();) wanted.insert(next_character(*characters, &at));
  const auto is_stripped = [&](char32_t character) {
    return characters ? wanted.contains(character) : is_space(character);
  };
  while (at_begin && !text.empty()) {
    size_t end = 0;
    if (!is_stripped(next_character(text, &end))) break;
    text.remove_prefix(end);
  }
  while (at_end && !text.empty()) {
    const size_t last = last_character(text);
    size_t behind = last;
    if (!is_stripped(next_character(text, &behind))) break;
    text = text.substr(0, last);
  }
  return text;
}

std::string replaced(Rendering& run, std::string_view text, std::string_view old, std::string_view with, int64_t most) {
  run.work(text.size());
  std::string made;
  int64_t count = 0;
  size_t start = 0;
  const auto may_go_on = [&] { return most < 0 || count < most; };
  if (old.empty()) {  // Python inserts before each character and at the end
    for (size_t at = 0; may_go_on(); ++count) {
      run.check_size(static_cast<int64_t>(made.size() + with.size()));
      made += with;
      if (at == text.size()) {
        start = at;
        break;
      }
      next_character(text, &at);
      made += text.substr(start, at - start);
      start = at;
    }
  } else {
    for (; may_go_on(); ++count) {
      const size_t at = find_bytes(text, old, start);
      if (at == std::string_view::npos) break;
      run.check_size(static_cast<int64_t>(made.size() + at - start + with.size()));
      made += text.substr(start, at - start);
      made += with;
      start = at + old.size();
    }
  }
  run.check_size(static_cast<int64_t>(made.size() + text.size() - start));
  made += text.substr(start);
  return made;
}

std::string padded(Rendering& run, std::string_view text, int64_t left, int64_t right, char fill) {
  left = std::max<int64_t>(left, 0);
  right = std::max<int64_t>(right, 0);
  run.check_size(left);
  run.check_size(right);
  std::string made(static_cast<size_t>(left), fill);
  made += text;
  made.append(static_cast<size_t>(right), fill);
  return made;
}

size_t complete_prefix(std::string_view text, size_t size) {
  if (text.size() <= size) return text.size();
  while (size > 0 && (static_cast<uint8_t>(text[size]) & 0xC0) == 0x80) --size;
  return size;
}

Text soft_text(Rendering& run, const Value& value) {
  if (const auto* text = value.as<Text>()) {
    run.work(text->bytes().size());
    return *text;
  }
  return *run.text(printed(run, value)).as<Text>();
}

Value list_of_texts(Rendering& run, const std::vector<std::string_view>& pieces, bool safe) {
  run.check_items(static_cast<int64_t>(pieces.size()));
  Values items;
  items.reserve(pieces.size());
  for (const auto& piece : pieces) items.push_back(run.text(std::string(piece), safe));
  return run.list(std::move(items));
}

}  // namespace prism::jinja
