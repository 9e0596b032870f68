// The methods of Python's str, except those that no template uses.
#include <algorithm>
#include <functional>

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

/// The text that the method belongs to.
const Text& text_of(Rendering& run, const Value& self) {
  const Text& text = *self.as<Text>();
  run.work(text.bytes().size());
  return text;
}

template <std::string (*change)(std::string_view)>
Value method_of_case(Rendering& run, const Value& self, const Arguments& arguments) {
  const Parameters given(run, arguments, "this method of text", {});
  const Text& text = text_of(run, self);
  return run.text(change(text.bytes()), text.safe);
}

template <bool at_begin, bool at_end>
Value method_strip(Rendering& run, const Value& self, const Arguments& arguments) {
  const Parameters given(run, arguments, "strip()", {""});
  const Text& text = text_of(run, self);
  const std::string* characters = given.other_than_none(0) ? &given.text(0).bytes() : nullptr;
  return run.text(std::string(stripped(text.bytes(), characters, at_begin, at_end)), text.safe);
}

/// The part of a text between the bounds that methods such as find() take.
struct Part {
  std::string_view bytes;
  size_t offset = 0;  ///< in bytes
  bool is_valid = true;
};

Part part_of(const Text& text, const Parameters& given, size_t start_index) {
  const int64_t size = text.characters();
  const auto clamped = [&](int64_t number) {
    return std::clamp<int64_t>(number < 0 ? number + size : number, 0, size);
  };
  const bool has_start = given.other_than_none(start_index), has_end = given.other_than_none(start_index + 1);
  const int64_t first = has_start ? given.whole(start_index, 0) : 0;
  const int64_t end = has_end ? clamped(given.whole(start_index + 1, 0)) : size;
  // A start beyond the end of the text finds nothing, not even an empty text.
  if (first > size || clamped(first) > end) return {{}, 0, false};
  const size_t offset = offset_of_character(text.bytes(), static_cast<size_t>(clamped(first)));
  const size_t bytes =
      offset_of_character(std::string_view(text.bytes()).substr(offset), static_cast<size_t>(end - clamped(first)));
  return {std::string_view(text.bytes()).substr(offset, bytes), offset};
}

template <bool at_end>
Value method_starts_with(Rendering& run, const Value& self, const Arguments& arguments) {
  const Parameters given(run, arguments, at_end ? "endswith()" : "startswith()", {"", "", ""}, 1);
  const Part part = part_of(text_of(run, self), given, 1);
  const auto matches = [&](const Value& prefix) {
    const auto* text = prefix.as<Text>();
    if (!text) run.refuse("expected text or a tuple of texts to look for; found {}; convert it first.", prefix.kind());
    return part.is_valid && (at_end ? part.bytes.ends_with(text->bytes()) : part.bytes.starts_with(text->bytes()));
  };
  const auto* list = given[0]->as<List>();
  if (list && list->is_tuple) return std::any_of(list->items().begin(), list->items().end(), matches);
  return matches(*given[0]);
}

template <bool from_end>
Value method_split(Rendering& run, const Value& self, const Arguments& arguments) {
  const Parameters given(run, arguments, "split()", {"sep", "maxsplit"});
  const Text& text = text_of(run, self);
  const int64_t most = given.whole(1, -1);
  if (!given.other_than_none(0)) {
    return list_of_texts(run, from_end ? split_words_from_end(text.bytes(), most) : split_words(text.bytes(), most),
                         text.safe);
  }
  const std::string& separator = given.text(0).bytes();
  if (separator.empty()) run.refuse("expected a separator that is not empty; found an empty one; use the filter list.");
  return list_of_texts(
      run, from_end ? split_from_end(text.bytes(), separator, most) : split_at(text.bytes(), separator, most),
      text.safe);
}

Value method_split_lines(Rendering& run, const Value& self, const Arguments& arguments) {
  const Parameters given(run, arguments, "splitlines()", {"keepends"});
  const Text& text = text_of(run, self);
  return list_of_texts(run, split_lines(text.bytes(), given.truth(0, false)), text.safe);
}

template <bool from_end>
Value method_partition(Rendering& run, const Value& self, const Arguments& arguments) {
  const Parameters given(run, arguments, "partition()", {""}, 1);
  const Text& text = text_of(run, self);
  const std::string& separator = given.text(0).bytes();
  if (separator.empty()) run.refuse("expected a separator that is not empty; found an empty one; name one.");
  const std::string& bytes = text.bytes();
  const size_t at = from_end ? find_last_bytes(bytes, separator) : find_bytes(bytes, separator);
  if (at == std::string::npos) {
    const Value empty = run.text("", text.safe);
    return from_end ? run.tuple({empty, empty, self}) : run.tuple({self, empty, empty});
  }
  return run.tuple({run.text(bytes.substr(0, at), text.safe), run.text(separator, text.safe),
                    run.text(bytes.substr(at + separator.size()), text.safe)});
}

Value method_join(Rendering& run, const Value& self, const Arguments& arguments) {
  const Parameters given(run, arguments, "join()", {""}, 1);
  const Text& separator = text_of(run, self);
  std::string made;
  bool is_first = true;
  Iterator items(*given[0]);
  while (auto item = items.next(run)) {
    if (separator.safe) item = escaped(run, *item);
    const auto* text = item->as<Text>();
    if (!text) run.refuse("expected texts to join; found {}; use the filter join.", item->kind());
    run.check_size(static_cast<int64_t>(made.size() + separator.bytes().size() + text->bytes().size()));
    if (!is_first) made += separator.bytes();
    made += text->bytes();
    is_first = false;
  }
  return run.text(std::move(made), separator.safe);
}

Value method_replace(Rendering& run, const Value& self, const Arguments& arguments) {
  const Parameters given(run, arguments, "replace()", {"", "", ""}, 2);
  const Text& text = text_of(run, self);
  const Value with = text.safe ? escaped(run, *given[1]) : Value(given.text(1));
  return run.text(replaced(run, text.bytes(), given.text(0).bytes(), with.as<Text>()->bytes(), given.whole(2, -1)),
                  text.safe);
}

/// Number of characters before the occurrence of a text, or -1.
template <bool from_end>
int64_t place_of(Rendering& run, const Value& self, const Arguments& arguments) {
  const Parameters given(run, arguments, "find()", {"", "", ""}, 1);
  const Text& text = text_of(run, self);
  const std::string& wanted = given.text(0).bytes();
  const Part part = part_of(text, given, 1);
  if (!part.is_valid) return -1;
  const size_t at = from_end ? find_last_bytes(part.bytes, wanted) : find_bytes(part.bytes, wanted);
  if (at == std::string_view::npos) return -1;
  return static_cast<int64_t>(count_characters(std::string_view(text.bytes()).substr(0, part.offset + at)));
}

template <bool from_end>
Value method_find(Rendering& run, const Value& self, const Arguments& arguments) {
  return place_of<from_end>(run, self, arguments);
}

template <bool from_end>
Value method_index(Rendering& run, const Value& self, const Arguments& arguments) {
  const int64_t place = place_of<from_end>(run, self, arguments);
  if (place < 0) run.refuse("expected a text that occurs; found one that does not; use find().");
  return place;
}

Value method_count(Rendering& run, const Value& self, const Arguments& arguments) {
  const Parameters given(run, arguments, "count()", {"", "", ""}, 1);
  const std::string& wanted = given.text(0).bytes();
  const Part part = part_of(text_of(run, self), given, 1);
  if (!part.is_valid) return int64_t{0};
  if (wanted.empty()) return static_cast<int64_t>(count_characters(part.bytes)) + 1;
  int64_t count = 0;
  for (size_t at = find_bytes(part.bytes, wanted); at != std::string_view::npos; ++count)
    at = find_bytes(part.bytes, wanted, at + wanted.size());
  return count;
}

template <bool (*has)(char32_t)>
Value method_all(Rendering& run, const Value& self, const Arguments& arguments) {
  const Parameters given(run, arguments, "this method of text", {});
  const std::string& bytes = text_of(run, self).bytes();
  for (size_t at = 0; at < bytes.size();) {
    if (!has(next_character(bytes, &at))) return false;
  }
  return !bytes.empty();
}

/// Python's isupper() and islower(): some character has the case, and none has another.
template <bool (*has)(char32_t)>
Value method_has_case(Rendering& run, const Value& self, const Arguments& arguments) {
  const Parameters given(run, arguments, "this method of text", {});
  const std::string& bytes = text_of(run, self).bytes();
  bool found = false;
  for (size_t at = 0; at < bytes.size();) {
    const char32_t character = next_character(bytes, &at);
    if (has(character)) {
      found = true;
    } else if (is_cased(character)) {
      return false;
    }
  }
  return found;
}

enum class Alignment { left, right, center };

template <Alignment alignment>
Value method_align(Rendering& run, const Value& self, const Arguments& arguments) {
  const Parameters given(run, arguments, "this method of text", {"", ""}, 1);
  const Text& text = text_of(run, self);
  char fill = ' ';
  if (given[1]) {
    const std::string& bytes = given.text(1).bytes();
    if (bytes.size() != 1) run.refuse("expected one ASCII character to fill with; found another text; name one.");
    fill = bytes[0];
  }
  const int64_t width = given.whole(0, 0);
  const int64_t missing = width <= text.characters() ? 0 : width - text.characters();
  // Python puts the odd space to the left if the width is odd.
  const int64_t left = alignment == Alignment::left    ? 0
                       : alignment == Alignment::right ? missing
                                                       : missing / 2 + (missing & width & 1);
  return run.text(padded(run, text.bytes(), left, missing - left, fill), text.safe);
}

Value method_zero_fill(Rendering& run, const Value& self, const Arguments& arguments) {
  const Parameters given(run, arguments, "zfill()", {""}, 1);
  const Text& text = text_of(run, self);
  const std::string_view bytes = text.bytes();
  const size_t sign = bytes.starts_with('-') || bytes.starts_with('+') ? 1 : 0;
  const int64_t width = given.whole(0, 0);
  const int64_t missing = width <= text.characters() ? 0 : width - text.characters();
  return run.text(std::string(bytes.substr(0, sign)) + padded(run, bytes.substr(sign), missing, 0, '0'), text.safe);
}

template <bool at_end>
Value method_remove(Rendering& run, const Value& self, const Arguments& arguments) {
  const Parameters given(run, arguments, "removeprefix() or removesuffix()", {""}, 1);
  const Text& text = text_of(run, self);
  std::string_view bytes = text.bytes();
  const std::string& part = given.text(0).bytes();
  if (at_end && bytes.ends_with(part)) bytes.remove_suffix(part.size());
  if (!at_end && bytes.starts_with(part)) bytes.remove_prefix(part.size());
  return run.text(std::string(bytes), text.safe);
}

Value method_format(Rendering& run, const Value& self, const Arguments& arguments) {
  const Text& text = text_of(run, self);
  if (text.safe) run.refuse("expected text that is not marked safe before format(); found such text; use ~ instead.");
  return run.text(format_braces(run, text.bytes(), arguments));
}

}  // namespace

const MethodTable& text_methods() {
  static const MethodTable kMethods = {{"capitalize", method_of_case<capitalized>},
                                       {"center", method_align<Alignment::center>},
                                       {"count", method_count},
                                       {"endswith", method_starts_with<true>},
                                       {"find", method_find<false>},
                                       {"format", method_format},
                                       {"index", method_index<false>},
                                       {"isalnum", method_all<is_alphanumeric>},
                                       {"isalpha", method_all<is_letter>},
                                       {"isdigit", method_all<is_digit>},
                                       {"islower", method_has_case<is_lower>},
                                       {"isspace", method_all<is_space>},
                                       {"isupper", method_has_case<is_upper>},
                                       {"join", method_join},
                                       {"ljust", method_align<Alignment::left>},
                                       {"lower", method_of_case<lower_case>},
                                       {"lstrip", method_strip<true, false>},
                                       {"partition", method_partition<false>},
                                       {"removeprefix", method_remove<false>},
                                       {"removesuffix", method_remove<true>},
                                       {"replace", method_replace},
                                       {"rfind", method_find<true>},
                                       {"rindex", method_index<true>},
                                       {"rjust", method_align<Alignment::right>},
                                       {"rpartition", method_partition<true>},
                                       {"rsplit", method_split<true>},
                                       {"rstrip", method_strip<false, true>},
                                       {"split", method_split<false>},
                                       {"splitlines", method_split_lines},
                                       {"startswith", method_starts_with<false>},
                                       {"strip", method_strip<true, true>},
                                       {"swapcase", method_of_case<swapped_case>},
                                       {"title", method_of_case<title_case>},
                                       {"upper", method_of_case<upper_case>},
                                       {"zfill", method_zero_fill}};
  return kMethods;
}

}  // namespace prism::jinja
