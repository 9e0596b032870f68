#include "prism/template/values/characters.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>

#include "prism/template/values/special_case.h"

namespace prism::jinja {
namespace {

bool is_continuation(char byte) {
  return (static_cast<uint8_t>(byte) & 0xC0) == 0x80;
}

utf8proc_category_t category_of(char32_t character) {
  return utf8proc_category(static_cast<int32_t>(character));
}

void append_upper(std::string& text, char32_t character) {
  if (const auto* special = find_special_case(character)) {
    text += special->upper;
  } else {
    append_character(text, static_cast<char32_t>(utf8proc_toupper(static_cast<int32_t>(character))));
  }
}

void append_title(std::string& text, char32_t character) {
  if (const auto* special = find_special_case(character)) {
    text += special->title;
  } else {
    append_character(text, static_cast<char32_t>(utf8proc_totitle(static_cast<int32_t>(character))));
  }
}

/// Characters that Unicode's rule for the final sigma looks through: marks, modifiers, quotes.
bool is_case_ignorable(char32_t character) {
  constexpr char32_t kPunctuation[] = {'\'',   '.',    ':',    0xB7,   0x387,  0x55F,  0x5F4,  0x2018, 0x2019,
                                       0x2024, 0x2027, 0xFE13, 0xFE52, 0xFE55, 0xFF07, 0xFF0E, 0xFF1A};
  switch (category_of(character)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return std::find(std::begin(kPunctuation), std::end(kPunctuation), character) != std::end(kPunctuation);
  }
}

/// Returns true if the sigma at [at, end) ends a word: a cased character comes before it and none after it.
bool is_final_sigma(std::string_view text, size_t at, size_t end) {
  bool before = false;
  for (size_t place = at; place > 0;) {
    do --place;
    while (place > 0 && is_continuation(text[place]));
    size_t behind = place;
    const char32_t character = next_character(text, &behind);
    if (is_case_ignorable(character)) continue;
    before = is_cased(character);
    break;
  }
  if (!before) return false;
  while (end < text.size()) {
    const char32_t character = next_character(text, &end);
    if (!is_case_ignorable(character)) return !is_cased(character);
  }
  return true;
}

void append_lower(std::string& text, std::string_view whole, size_t at, size_t end, char32_t character) {
  if (character == 0x130) {  // capital I with a dot
    text += "i\u0307";
  } else if (character == 0x3A3) {
    append_character(text, is_final_sigma(whole, at, end) ? 0x3C2 : 0x3C3);
  } else {
    append_character(text, static_cast<char32_t>(utf8proc_tolower(static_cast<int32_t>(character))));
  }
}

}  // namespace

size_t count_characters(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char byte) { return !is_continuation(byte); }));
}

size_t offset_of_character(std::string_view text, size_t index) {
  size_t at = 0;
  for (; at < text.size(); ++at) {
    if (is_continuation(text[at])) continue;
    if (index-- == 0) return at;
  }
  return at;
}

char32_t next_character(std::string_view text, size_t* at) {
  const auto lead = static_cast<uint8_t>(text[*at]);
  ++*at;
  char32_t character = lead < 0x80 ? lead : lead < 0xE0 ? lead & 0x1Fu : lead < 0xF0 ? lead & 0x0Fu : lead & 0x07u;
  while (*at < text.size() && is_continuation(text[*at])) {
    character = character << 6 | (static_cast<uint8_t>(text[*at]) & 0x3Fu);
    ++*at;
  }
  return character;
}

void append_character(std::string& text, char32_t character) {
  uint8_t bytes[4];
  const auto size = utf8proc_encode_char(static_cast<int32_t>(character), bytes);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
}

bool is_space(char32_t character) {
  if (character < 0x80) return (character >= 9 && character <= 13) || (character >= 0x1C && character <= 0x20);
  return character == 0x85 || character == 0xA0 || character == 0x1680 ||
         (character >= 0x2000 && character <= 0x200A) || character == 0x2028 || character == 0x2029 ||
         character == 0x202F || character == 0x205F || character == 0x3000;
}

bool is_letter(char32_t character) {
  const auto category = category_of(character);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool is_digit(char32_t character) {
  // Digits that are not decimal: superscripts, circled digits and a few scripts (Unicode's Numeric_Type=Digit).
  static constexpr char32_t kRanges[][2] = {
      {0xB2, 0xB3},     {0xB9, 0xB9},       {0x1369, 0x1371},   {0x19DA, 0x19DA},   {0x2070, 0x2070},
      {0x2074, 0x2079}, {0x2080, 0x2089},   {0x2460, 0x2468},   {0x2474, 0x247C},   {0x2488, 0x2490},
      {0x24EA, 0x24EA}, {0x24F5, 0x24FD},   {0x24FF, 0x24FF},   {0x2776, 0x277E},   {0x2780, 0x2788},
      {0x278A, 0x2792}, {0x10A40, 0x10A43}, {0x10E60, 0x10E68}, {0x11052, 0x1105A}, {0x1F100, 0x1F10A}};
  if (category_of(character) == UTF8PROC_CATEGORY_ND) return true;
  return std::any_of(std::begin(kRanges), std::end(kRanges),
                     [&](const auto& range) { return character >= range[0] && character <= range[1]; });
}

bool is_alphanumeric(char32_t character) {
  const auto category = category_of(character);
  return is_letter(character) || is_digit(character) ||
         (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO);
}

bool is_printable(char32_t character) {
  if (character == ' ') return true;
  switch (category_of(character)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

bool is_upper(char32_t character) {
  return utf8proc_isupper(static_cast<int32_t>(character)) != 0;
}

bool is_lower(char32_t character) {
  return utf8proc_islower(static_cast<int32_t>(character)) != 0;
}

bool is_cased(char32_t character) {
  return is_upper(character) || is_lower(character) || category_of(character) == UTF8PROC_CATEGORY_LT;
}

std::string upper_case(std::string_view text) {
  std::string made;
  for (size_t at = 0; at < text.size();) append_upper(made, next_character(text, &at));
  return made;
}

std::string lower_case(std::string_view text) {
  std::string made;
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    const char32_t character = next_character(text, &at);
    append_lower(made, text, start, at, character);
  }
  return made;
}

std::string title_case(std::string_view text) {
  std::string made;
  bool in_word = false;
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    const char32_t character = next_character(text, &at);
    if (in_word) {
      append_lower(made, text, start, at, character);
    } else {
      append_title(made, character);
    }
    in_word = is_cased(character);
  }
  return made;
}

std::string capitalized(std::string_view text) {
  std::string made;
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    const char32_t character = next_character(text, &at);
    if (start == 0) {
      append_title(made, character);
    } else {
      append_lower(made, text, start, at, character);
    }
  }
  return made;
}

std::string swapped_case(std::string_view text) {
  std::string made;
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    const char32_t character = next_character(text, &at);
    if (is_upper(character)) {
      append_lower(made, text, start, at, character);
    } else if (is_lower(character)) {
      append_upper(made, character);
    } else {
      append_character(made, character);
    }
  }
  return made;
}

size_t end_without_space(std::string_view text) {
  size_t end = text.size();
  while (end > 0) {
    size_t place = end - 1;
    while (place > 0 && is_continuation(text[place])) --place;
    size_t behind = place;
    if (!is_space(next_character(text, &behind))) break;
    end = place;
  }
  return end;
}

size_t begin_without_space(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    size_t behind = at;
    if (!is_space(next_character(text, &behind))) break;
    at = behind;
  }
  return at;
}

}  // namespace prism::jinja
