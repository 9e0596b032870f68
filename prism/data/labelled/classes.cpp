#include "prism/data/labelled/classes.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_map>

#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/core/text/blanks.h"
#include "prism/core/text/names.h"
#include "prism/core/text/printable.h"
#include "prism/core/text/utf8.h"

namespace prism {
namespace {

constexpr size_t kMostClasses = 65536;

std::optional<int64_t> whole_number(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// The labels as numbers; empty if one of them is none.
std::vector<int64_t> numbers_of(const std::vector<FoundLabel>& labels) {
  std::vector<int64_t> numbers;
  for (const auto& label : labels) {
    const auto number = whole_number(label.text);
    if (!number) return {};
    numbers.push_back(*number);
  }
  return numbers;
}

[[noreturn]] void refuse(const FoundLabel& label, const std::vector<std::string>& names) {
  const std::vector<std::string> first(names.begin(), names.begin() + std::min<std::ptrdiff_t>(20, std::ssize(names)));
  throw InputError("tokenize",
                   fmt::format("{}: expected one of the classes {}; found the label \"{}\"; correct the row, or name "
                               "the class in --classes.",
                               label.place, short_line(join_names(first), 200), short_line(label.text, 60)));
}

/// Refuses a label that looks like the name of its column: other labels repeat, or are numbers.
void check_no_header(const std::vector<FoundLabel>& labels) {
  const auto is_name = [](const FoundLabel& label) { return label.rows == 0; };
  const auto found = std::find_if(labels.begin(), labels.end(), is_name);
  if (found == labels.end()) return;
  const auto all_others = [&](const auto& is) {
    return std::all_of(labels.begin(), labels.end(),
                       [&](const FoundLabel& label) { return is_name(label) || is(label); });
  };
  const bool others_repeat = all_others([](const FoundLabel& label) { return label.rows >= 2; });
  const bool others_are_numbers = !whole_number(found->text) && all_others([](const FoundLabel& label) {
    return whole_number(label.text).has_value();
  });
  PRISM_CHECK(!others_repeat && !others_are_numbers, "tokenize",
              "{}: expected the label of a row; found \"{}\", which no other row has, as in a row of names; give the "
              "column's name in --label instead of its number, or name all classes with --classes.",
              found->place, short_line(found->text, 60));
}

/// Refuses a slip of the pen: labels that are no numbers, each in one row, among numbers.
void check_one_kind(const std::vector<FoundLabel>& labels) {
  const auto is_number = [](const FoundLabel& label) { return whole_number(label.text).has_value(); };
  const auto number = std::find_if(labels.begin(), labels.end(), is_number);
  const auto other = std::find_if_not(labels.begin(), labels.end(), is_number);
  const bool is_slip = number != labels.end() && other != labels.end() &&
                       std::all_of(labels.begin(), labels.end(),
                                   [&](const FoundLabel& label) { return is_number(label) || label.rows <= 1; });
  PRISM_CHECK(!is_slip, "tokenize",
              "{}: expected a number as the label, such as {} at {}; found \"{}\", which no other row has; correct the "
              "row, or list all classes in a file for --classes.",
              other->place, number->text, number->place, short_line(other->text, 60));
}

void check_count(size_t count) {
  PRISM_CHECK(count >= 2 && count <= kMostClasses, "tokenize",
              "expected from 2 to {} classes; found {}; check --label, or name all classes with --classes.",
              kMostClasses, count);
}

/// The index of each name.
std::unordered_map<std::string, int32_t> index_of(const std::vector<std::string>& names) {
  std::unordered_map<std::string, int32_t> index;
  for (const auto& name : names)
    PRISM_CHECK(index.emplace(name, static_cast<int32_t>(index.size())).second, "tokenize",
                "expected each class once in --classes; found \"{}\" twice; leave one out.", short_line(name, 60));
  return index;
}

/// The number of the first class, 0 or 1, and, without names, the names of all.
int64_t find_first(const std::vector<FoundLabel>& labels, const std::vector<int64_t>& numbers,
                   std::vector<std::string>& names) {
  std::vector<int64_t> found;  // in training texts
  for (size_t i = 0; i < labels.size(); ++i) {
    PRISM_CHECK(numbers[i] >= 0, "tokenize",
                "{}: expected classes numbered from 0 or 1; found the label {}; correct or remove the rows with it.",
                labels[i].place, numbers[i]);
    if (labels[i].in_training) found.push_back(numbers[i]);
  }
  std::sort(found.begin(), found.end());
  if (found.empty()) return 0;
  const auto count = static_cast<int64_t>(names.size());
  const int64_t first = found.front() == 0 ? 0 : 1;
  if (!names.empty()) {
    PRISM_CHECK(
        first == 0 || found.back() >= count, "tokenize",
        "expected labels that show whether they count {} classes from 0 or 1; found {} to {}; write the names of "
        "the classes as labels, or add rows of the others.",
        count, found.front(), found.back());
    return first;
  }
  for (int64_t number = first; number <= found.back(); ++number) {
    const size_t place = static_cast<size_t>(number - first);
    PRISM_CHECK(
        place < found.size() && found[place] == number, "tokenize",
        "expected training rows of every class from {} to {}; found none of {}; name all classes with --classes.",
        first, found.back(), number);
    names.push_back(std::to_string(number));
  }
  return first;
}

}  // namespace

ClassMap map_classes(const std::vector<FoundLabel>& labels, std::vector<std::string> names) {
  ClassMap map{std::move(names), {}};
  if (map.names.empty()) {
    check_no_header(labels);
    check_one_kind(labels);
  } else {
    check_count(map.names.size());
  }
  auto index = index_of(map.names);
  const bool named =
      std::any_of(labels.begin(), labels.end(), [&](const FoundLabel& label) { return index.contains(label.text); });
  const auto numbers = named ? std::vector<int64_t>() : numbers_of(labels);
  const int64_t first = numbers.empty() ? 0 : find_first(labels, numbers, map.names);
  if (numbers.empty() && map.names.empty()) {
    for (const auto& label : labels)
      if (label.in_training) map.names.push_back(label.text);
    check_count(map.names.size());
    std::sort(map.names.begin(), map.names.end());
    index = index_of(map.names);
  }
  check_count(map.names.size());
  for (size_t i = 0; i < labels.size(); ++i) {
    const auto found = index.find(labels[i].text);
    const int64_t place = !numbers.empty() ? numbers[i] - first : found == index.end() ? -1 : found->second;
    if (place < 0 || place >= std::ssize(map.names)) refuse(labels[i], map.names);
    map.class_of_label.push_back(static_cast<int32_t>(place));
  }
  return map;
}

std::vector<std::string> read_class_names(const std::filesystem::path& file) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  std::string text = read_file(file);
  PRISM_CHECK(find_invalid_utf8(text) == std::string::npos, "tokenize",
              "{}: expected UTF-8; found other bytes; convert the file.", plain_line(file.string()));
  if (text.starts_with(kMark)) text.erase(0, kMark.size());
  std::vector<std::string> names;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    if (!is_blank(line)) names.emplace_back(trimmed(line));
    at = end + 1;
  }
  PRISM_CHECK(!names.empty(), "tokenize", "{}: expected names of classes, one a line; found none; name another file.",
              plain_line(file.string()));
  return names;
}

}  // namespace prism
