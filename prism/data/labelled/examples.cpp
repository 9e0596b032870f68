#include "prism/data/labelled/examples.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/text/blanks.h"
#include "prism/core/text/counted.h"
#include "prism/core/text/names.h"
#include "prism/core/text/printable.h"

namespace prism {
namespace {

/// A column's number from 1; std::nullopt if it is a name.
std::optional<size_t> number_of(const std::string& column) {
  size_t number = 0;
  const auto [end, error] = std::from_chars(column.data(), column.data() + column.size(), number);
  if (error != std::errc() || end != column.data() + column.size()) return std::nullopt;
  PRISM_CHECK(number > 0, "examples", "expected numbers of columns from 1; found {}; change it.", column);
  return number;
}

/// Returns true if two columns are the same, however their numbers are written.
bool is_same(const std::string& a, const std::string& b) {
  return a == b || (number_of(a) && number_of(a) == number_of(b));
}

}  // namespace

std::string with_line_ends(const std::string& text) {
  std::string read;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_written = text[i] == '\\' && i + 1 < text.size() && text[i + 1] == 'n';
    read += is_written ? '\n' : text[i];
    i += static_cast<size_t>(is_written);
  }
  return read;
}

ExampleSource::ExampleSource(std::vector<std::string> files, ExampleOptions options)
    : files_(std::move(files)), options_(std::move(options)), text_fields_(options_.text_fields) {
  PRISM_ASSERT(!options_.label.empty() || !text_fields_.empty(), "examples", "neither a label nor text fields");
  by_number_ = number_of(options_.label.empty() ? std::string(trimmed(text_fields_[0])) : options_.label).has_value();
  for (auto& column : text_fields_) column = std::string(trimmed(column));
  for (size_t i = 0; i < text_fields_.size(); ++i) {
    const auto& column = text_fields_[i];
    PRISM_CHECK(number_of(column).has_value() == by_number_, "examples",
                "expected columns all by name or all by number; found \"{}\" and the text field \"{}\"; use one kind.",
                options_.label.empty() ? text_fields_[0] : options_.label, column);
    PRISM_CHECK(!is_same(column, options_.label), "examples",
                "expected text fields beside the label; found {} as both; leave it out of one.", column);
    for (size_t j = 0; j < i; ++j)
      PRISM_CHECK(!is_same(column, text_fields_[j]), "examples",
                  "expected each text field once; found {} twice; leave one out.", column);
  }
}

int64_t ExampleSource::consumed() const {
  return consumed_before_ + (reader_ ? reader_->consumed() : 0);
}

void ExampleSource::open_next() {
  const std::string& file = files_[next_file_++];
  reader_ = open_rows(file, options_.format);
  is_first_row_ = true;
  PRISM_CHECK(!by_number_ || !reader_->has_names(), "examples",
              "expected names of members as columns for JSON in {}; found the number {}; give names.", plain_line(file),
              options_.label.empty() ? text_fields_[0] : options_.label);
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
    const bool may_be_header = std::exchange(is_first_row_, false) && by_number_;
    if (holds_names) continue;
    Example example = example_of(*row);
    example.may_be_header = may_be_header;
    return example;
  }
}

bool ExampleSource::find_columns(const Row& row) {
  if (has_labels()) label_at_ = find_column(row, options_.label);
  if (text_fields_.empty())
    for (size_t i = 0; i < row.fields.size(); ++i)
      if (i != label_at_) text_fields_.push_back(by_number_ ? std::to_string(i + 1) : name_of(row.fields[i]));
  PRISM_CHECK(!text_fields_.empty(), "examples",
              "{}, line {}: expected columns beside the label; found one column; {}.",
              plain_line(files_[next_file_ - 1]), row.line,
              reader_->has_names() ? "give each object a text" : "separate values by commas");
  texts_at_.clear();
  for (const auto& column : text_fields_) texts_at_.push_back(find_column(row, column));
  return !by_number_ && !reader_->has_names();
}

const std::string& ExampleSource::name_of(const std::pair<std::string, std::string>& field) const {
  return reader_->has_names() ? field.first : field.second;
}

size_t ExampleSource::find_column(const Row& row, const std::string& column) const {
  const std::string& file = files_[next_file_ - 1];
  if (by_number_) {
    const size_t number = *number_of(column);
    PRISM_CHECK(number <= row.fields.size(), "examples",
                "{}, line {}: expected a column {}; found {}; give another number in {}.", plain_line(file), row.line,
                number, counted(std::ssize(row.fields), "column"),
                column == options_.label ? "--label" : "--text-fields");
    return number - 1;
  }
  std::vector<std::string> names;
  for (const auto& field : row.fields) names.push_back(name_of(field));
  const auto found = std::find(names.begin(), names.end(), column);
  PRISM_CHECK(found == names.end() || std::find(found + 1, names.end(), column) == names.end(), "examples",
              "{}, line {}: expected one column \"{}\"; found two; rename one, or give the columns' numbers.",
              plain_line(file), row.line, plain_line(column));
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  throw InputError(
      "examples", fmt::format("{}, line {}: expected a column \"{}\"; found {}; give another name{}.", plain_line(file),
                              row.line, plain_line(column), short_line(join_names(names), 200),
                              reader_->has_names() ? "" : ", or the column's number"));
}

Example ExampleSource::example_of(Row& row) const {
  Example example;
  example.place = fmt::format("{}, line {}", plain_line(files_[next_file_ - 1]), row.line);
  if (has_labels()) example.label = trimmed(row.fields[label_at_].second);
  PRISM_CHECK(!has_labels() || !example.label.empty(), "examples",
              "{}: expected a label; found none; give one, or remove the row.", example.place);
  bool is_empty = true;
  for (const size_t at : texts_at_) {
    auto& text = row.fields[at].second;
    if (!reader_->has_names()) text = with_line_ends(text);
    if (options_.words) text = words_(text);
    is_empty = is_empty && is_blank(text);
    example.texts.push_back(std::move(text));
  }
  PRISM_CHECK(!is_empty, "examples", "{}: expected a text; found none; give one, or remove the row.", example.place);
  return example;
}

}  // namespace prism
