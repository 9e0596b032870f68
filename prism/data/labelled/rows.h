// Reads the rows of CSV, JSONL and text files, plain or packed (.gz, .xz, .zst).
//
//   const auto reader = open_rows("train.csv.xz", "auto");
//   while (std::optional<Row> row = reader->next()) use(row->fields, row->place);
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace prism {

struct Row {
  /// Names and values of a JSON object's members; in CSV, values without names. Values that are not text have their
  /// JSON, whole numbers without a fraction (2.0 is 2); null is empty.
  std::vector<std::pair<std::string, std::string>> fields;
  int64_t line = 0;  ///< at which it begins, from 1
};

/// The rows of one file. Empty lines are skipped, but not in text files.
class RowReader {
 public:
  virtual ~RowReader() = default;
  /// The next row; std::nullopt at the end.
  /// @throws InputError naming the line: a quote that is never closed or stands inside an unquoted value (RFC 4180), a
  ///         row with another number of values than the first, a line that is not a JSON object, bytes that are not
  ///         UTF-8, a packed stream that is damaged or cut short.
  virtual std::optional<Row> next() = 0;
  /// Bytes of the file on disk that have been read.
  virtual int64_t consumed() const = 0;
  /// Returns true if fields have names.
  virtual bool has_names() const = 0;
};

/// @param path    a file, or - for standard input.
/// @param format  csv, jsonl, txt (each line is a row of one value), or auto: csv or jsonl by the name's ending.
/// @throws InputError for a file that cannot be read, another format, or a name without a known ending.
std::unique_ptr<RowReader> open_rows(const std::string& path, const std::string& format);

}  // namespace prism
