#include "prism/data/labelled/rows.h"

#include <csv.h>

#include <cmath>
#include <deque>

#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "prism/core/text/printable.h"
#include "prism/data/lines.h"

namespace prism {
namespace {

/// A value of a JSON object as text: 2.0, as tables of numbers with gaps are written, is 2.
std::string text_of_value(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_null()) return "";
  if (!value.is_number_float()) return to_text(value);
  const auto number = value.get<double>();
  const bool is_whole = number == std::floor(number) && std::abs(number) < 0x1p53;
  return is_whole ? std::to_string(static_cast<int64_t>(number)) : to_text(value);
}

class JsonRows : public RowReader {
 public:
  explicit JsonRows(const std::string& path) : objects_(path, "tokenize") {}

  std::optional<Row> next() override {
    const auto json = objects_.next();
    if (!json) return std::nullopt;
    Row row{{}, objects_.line()};
    for (const auto& [name, value] : json->items()) row.fields.emplace_back(name, text_of_value(value));
    return row;
  }
  int64_t consumed() const override { return objects_.consumed(); }
  bool has_names() const override { return true; }

 private:
  JsonLines objects_;
};

/// Each line is a row of one value.
class TextRows : public RowReader {
 public:
  explicit TextRows(const std::string& path) : lines_(path, "tokenize") {}

  std::optional<Row> next() override {
    auto line = lines_.next();
    if (!line) return std::nullopt;
    while (line->ends_with('\n') || line->ends_with('\r')) line->remove_suffix(1);
    return Row{{{"", std::string(*line)}}, lines_.number()};
  }
  int64_t consumed() const override { return lines_.consumed(); }
  bool has_names() const override { return false; }

 private:
  LineReader lines_;
};

/// Reads CSV with libcsv, line by line, so that the first line of each row is known.
class CsvRows : public RowReader {
 public:
  explicit CsvRows(const std::string& path) : lines_(path, "tokenize") {
    const int fault = csv_init(&parser_, CSV_STRICT | CSV_STRICT_FINI);
    PRISM_ASSERT(fault == 0, "tokenize", "libcsv cannot start");
    csv_set_space_func(&parser_, [](unsigned char) { return 0; });  // spaces around values belong to them
  }
  ~CsvRows() override { csv_free(&parser_); }
  CsvRows(const CsvRows&) = delete;
  CsvRows& operator=(const CsvRows&) = delete;

  std::optional<Row> next() override {
    while (ready_.empty() && !ended_) read_line();
    if (ready_.empty()) return std::nullopt;
    Row row = std::move(ready_.front());
    ready_.pop_front();
    if (width_ == 0) width_ = row.fields.size();
    PRISM_CHECK(row.fields.size() == width_, "tokenize",
                "{}: expected {} values, as in the first row; found {}; "
                "correct the row.",
                lines_.place(row.line), width_, row.fields.size());
    return row;
  }
  int64_t consumed() const override { return lines_.consumed(); }
  bool has_names() const override { return false; }

 private:
  void read_line() {
    const auto add_value = [](void* text, size_t size, void* self) {
      static_cast<CsvRows*>(self)->add_value(static_cast<const char*>(text), size);
    };
    const auto end_row = [](int, void* self) { static_cast<CsvRows*>(self)->end_row(); };
    const auto line = lines_.next();
    if (!line) {
      ended_ = true;
      const bool is_whole = csv_fini(&parser_, add_value, end_row, this) == 0;
      PRISM_CHECK(is_whole, "tokenize",
                  "{}: expected a closing quote for the value that begins in this row; found the end of the file; "
                  "add the quote.",
                  lines_.place(row_.line));
      return;
    }
    if (row_.line == 0) row_.line = lines_.number();
    const size_t taken = csv_parse(&parser_, line->data(), line->size(), add_value, end_row, this);
    PRISM_CHECK(taken == line->size() || csv_error(&parser_) == CSV_EPARSE, "tokenize",
                "{}: expected a row that fits into memory; found: {}; split the file.", lines_.place(lines_.number()),
                csv_strerror(csv_error(&parser_)));
    PRISM_CHECK(taken == line->size(), "tokenize",
                "{}: expected quotes around the whole value, and doubled inside it; found a quote elsewhere, at byte "
                "{} of the line; correct the row.",
                lines_.place(lines_.number()), taken + 1);
    if (row_.fields.empty() && !is_inside_quotes()) row_.line = 0;
  }

  void add_value(const char* text, size_t size) {
    if (row_.line == 0) row_.line = lines_.number();  // a carriage return alone ends a row, too
    row_.fields.emplace_back("", text == nullptr ? std::string() : std::string(text, size));
  }

  void end_row() {
    ready_.push_back(std::move(row_));
    row_ = {};
  }

  /// Returns true if a quoted value continues on the next line.
  bool is_inside_quotes() const { return parser_.quoted != 0; }

  LineReader lines_;
  csv_parser parser_{};
  Row row_;  ///< being read; its line is 0 before its first line
  std::deque<Row> ready_;
  size_t width_ = 0;  ///< values of the first row
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<RowReader> open_rows(const std::string& path, const std::string& format) {
  const std::string name = without_packed_ending(path);
  const bool is_csv = format == "csv" || (format == "auto" && name.ends_with(".csv"));
  const bool is_json = format == "jsonl" || (format == "auto" && (name.ends_with(".jsonl") || name.ends_with(".json")));
  PRISM_CHECK(format == "csv" || format == "jsonl" || format == "txt" || format == "auto", "tokenize",
              "expected the format csv, jsonl, txt or auto; found \"{}\"; choose one of them.", format);
  if (format == "txt") return std::make_unique<TextRows>(path);
  PRISM_CHECK(is_csv || is_json, "tokenize",
              "expected rows in a .csv or .jsonl file; found {}; name another, or give --format.", plain_line(path));
  if (is_csv) return std::make_unique<CsvRows>(path);
  return std::make_unique<JsonRows>(path);
}

}  // namespace prism
