#include "prism/data/labelled/classes.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/core/text/names.h"
#include "prism/core/text/printable.h"
#include "prism/core/text/utf8.h"

namespace prism {
namespace {

constexpr int64_t kMostClasses = 65536;

std::optional<int64_t> whole_number(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
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
  throw InputError("tokenize",
                   fmt::format("{}: expected one of the classes {}; found the label \"{}\"; correct the row, "
                               "or name the class in --classes.",
                               label.place, short_line(join_names(names), 200), short_line(label.text, 60)));
}

ClassMap map_numbers(const std::vector<FoundLabel>& labels, const std::vector<int64_t>& numbers,
                     std::vector<std::string> names) {
  const int64_t first = std::find(numbers.begin(), numbers.end(), 0) != numbers.end() ? 0 : 1;
  int64_t last = first - 1;
  for (size_t i = 0; i < labels.size(); ++i)
    if (labels[i].in_training) last = std::max(last, numbers[i]);
  if (names.empty()) {
    PRISM_CHECK(last - first < kMostClasses, "tokenize",
                "expected labels that number the classes from 0 or 1; found {}; give the classes' names with "
                "--classes.",
                last);
    for (int64_t number = first; number <= last; ++number) names.push_back(std::to_string(number));
  }
  ClassMap map{std::move(names), {}};
  for (size_t i = 0; i < labels.size(); ++i) {
    if (numbers[i] - first >= static_cast<int64_t>(map.names.size())) refuse(labels[i], map.names);
    map.class_of_label.push_back(static_cast<int32_t>(numbers[i] - first));
  }
  return map;
}

ClassMap map_words(const std::vector<FoundLabel>& labels, std::vector<std::string> names) {
  if (names.empty()) {
    std::set<std::string> words;
    for (const auto& label : labels)
      if (label.in_training) words.insert(label.text);
    names.assign(words.begin(), words.end());
  }
  ClassMap map{std::move(names), {}};
  for (const auto& label : labels) {
    const auto found = std::find(map.names.begin(), map.names.end(), label.text);
    if (found == map.names.end()) refuse(label, map.names);
    map.class_of_label.push_back(static_cast<int32_t>(found - map.names.begin()));
  }
  return map;
}

}  // namespace

ClassMap map_classes(const std::vector<FoundLabel>& labels, std::vector<std::string> names) {
  for (size_t i = 0; i < names.size(); ++i)
    PRISM_CHECK(std::find(names.begin() + static_cast<std::ptrdiff_t>(i) + 1, names.end(), names[i]) == names.end(),
                "tokenize", "expected each class once in --classes; found \"{}\" twice; leave one out.",
                short_line(names[i], 60));
  const auto numbers = numbers_of(labels);
  const bool named = std::any_of(labels.begin(), labels.end(), [&](const FoundLabel& label) {
    return std::find(names.begin(), names.end(), label.text) != names.end();
  });
  auto map = numbers.empty() || named ? map_words(labels, std::move(names)) : map_numbers(labels, numbers, names);
  PRISM_CHECK(map.names.size() >= 2 && static_cast<int64_t>(map.names.size()) <= kMostClasses, "tokenize",
              "expected from 2 to {} classes; found {}; check --label, or name all classes with --classes.",
              kMostClasses, map.names.size());
  return map;
}

std::vector<std::string> read_class_names(const std::filesystem::path& file) {
  const std::string text = read_file(file);
  PRISM_CHECK(find_invalid_utf8(text) == std::string::npos, "tokenize",
              "{}: expected UTF-8; found other bytes; convert the file.", file.string());
  std::vector<std::string> names;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string name = text.substr(at, end - at);
    if (name.ends_with('\r')) name.pop_back();
    if (!name.empty()) names.push_back(std::move(name));
    at = end + 1;
  }
  PRISM_CHECK(!names.empty(), "tokenize", "{}: expected names of classes, one a line; found none; name another file.",
              file.string());
  return names;
}

}  // namespace prism
