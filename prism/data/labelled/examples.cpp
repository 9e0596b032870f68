#include "prism/data/labelled/examples.h"

#include <algorithm>
#include <charconv>

#include "prism/core/error.h"
#include "prism/core/text/names.h"
#include "prism/core/text/printable.h"

namespace prism {
namespace {

/// A column's number from 1; 0 if it is a name.
size_t number_of(const std::string& column) {
  size_t number = 0;
  const auto [end, error] = std::from_chars(column.data(), column.data() + column.size(), number);
  return error == std::errc() && end == column.data() + column.size() ? number : 0;
}

/// Replaces every written \n, a backslash and an n, by a line end.
void read_line_ends(std::string& text) {
  for (size_t at = text.find("\\n"); at != std::string::npos; at = text.find("\\n", at + 1)) text.replace(at, 2, "\n");
}

bool is_blank(const std::string& text) {
  return text.find_first_not_of(" \t\r\n\v\f") == std::string::npos;
}

}  // namespace

ExampleSource::ExampleSource(std::vector<std::string> files, ExampleOptions options)
    : files_(std::move(files)),
      options_(std::move(options)),
      by_number_(number_of(options_.label) > 0),
      text_fields_(options_.text_fields) {
  PRISM_CHECK(!options_.label.empty(), "tokenize", "expected a column for --label; found none; name one.");
  for (size_t i = 0; i < text_fields_.size(); ++i) {
    const auto& column = text_fields_[i];
    PRISM_CHECK((number_of(column) > 0) == by_number_, "tokenize",
                "expected columns all by name or all by number; found label {} and text field {}; use one kind.",
                options_.label, column);
    PRISM_CHECK(column != options_.label, "tokenize",
                "expected text fields beside the label; found {} as both; leave it out of one.", column);
    PRISM_CHECK(std::find(text_fields_.begin(), text_fields_.begin() + static_cast<std::ptrdiff_t>(i), column) ==
                    text_fields_.begin() + static_cast<std::ptrdiff_t>(i),
                "tokenize", "expected each text field once; found {} twice; leave one out.", column);
  }
}

int64_t ExampleSource::consumed() const {
  return consumed_before_ + (reader_ ? reader_->consumed() : 0);
}

void ExampleSource::open_next() {
  const std::string& file = files_[next_file_++];
  reader_ = open_rows(file, options_.format);
  is_first_row_ = true;
  PRISM_CHECK(!by_number_ || !reader_->has_names(), "tokenize",
              "expected the name of a member as --label for JSON in {}; found the number {}; give a name.",
              plain_line(file), options_.label);
}

std::optional<Example> ExampleSource::next() {
  for (;;) {
    if (reader_ == nullptr) {
      if (next_file_ == files_.size()) return std::nullopt;
      open_next();
    }
    auto row = reader_->next();
    if (!row) {
      consumed_before_ += reader_->consumed();
      reader_.reset();
      continue;
    }
    // The members of JSON objects may stand in another order in each row.
    const bool holds_names = (is_first_row_ || reader_->has_names()) && find_columns(*row);
    is_first_row_ = false;
    if (!holds_names) return example_of(*row);
  }
}

bool ExampleSource::find_columns(const Row& row) {
  label_at_ = find_column(row, options_.label);
  texts_at_.clear();
  if (options_.text_fields.empty()) {
    text_fields_.clear();
    for (size_t i = 0; i < row.fields.size(); ++i) {
      if (i == label_at_) continue;
      texts_at_.push_back(i);
      text_fields_.push_back(by_number_             ? std::to_string(i + 1)
                             : reader_->has_names() ? row.fields[i].first
                                                    : row.fields[i].second);
    }
  } else {
    for (const auto& column : options_.text_fields) texts_at_.push_back(find_column(row, column));
  }
  return !by_number_ && !reader_->has_names();
}

size_t ExampleSource::find_column(const Row& row, const std::string& column) const {
  const std::string& file = files_[next_file_ - 1];
  if (by_number_) {
    const size_t number = number_of(column);
    PRISM_CHECK(number <= row.fields.size(), "tokenize",
                "{}, line {}: expected a column {}; found {} columns; give another number.", plain_line(file), row.line,
                number, row.fields.size());
    return number - 1;
  }
  std::vector<std::string> names;
  for (size_t i = 0; i < row.fields.size(); ++i) {
    names.push_back(reader_->has_names() ? row.fields[i].first : row.fields[i].second);
    if (names.back() == column) return i;
  }
  throw InputError(
      "tokenize", fmt::format("{}, line {}: expected a column \"{}\"; found {}; give another name{}.", plain_line(file),
                              row.line, plain_line(column), short_line(join_names(names), 200),
                              reader_->has_names() ? "" : ", or the column's number"));
}

Example ExampleSource::example_of(Row& row) const {
  Example example;
  example.place = fmt::format("{}, line {}", plain_line(files_[next_file_ - 1]), row.line);
  example.label = row.fields[label_at_].second;
  PRISM_CHECK(!is_blank(example.label), "tokenize", "{}: expected a label; found none; give one, or remove the row.",
              example.place);
  for (const size_t at : texts_at_) {
    auto& text = row.fields[at].second;
    if (!reader_->has_names()) read_line_ends(text);
    if (options_.words) text = words_(text);
    if (!is_blank(text)) example.texts.push_back(std::move(text));
  }
  PRISM_CHECK(!example.texts.empty(), "tokenize", "{}: expected a text; found none; give one, or remove the row.",
              example.place);
  return example;
}

}  // namespace prism
