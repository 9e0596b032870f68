// The lines of a text file, and the JSON objects of a JSONL file, with their numbers. Files may be packed.
//
//   JsonLines rows("piqa/valid.jsonl", "eval");
//   while (const auto row = rows.next()) use(*row, rows.place());
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "prism/core/json.h"
#include "prism/data/byte_stream.h"

namespace prism {

/// Without a byte-order mark.
class LineReader {
 public:
  /// @param path       a file, or - for standard input.
  /// @param operation  named by errors.
  /// @throws InputError as ByteStream.
  LineReader(const std::string& path, std::string operation);

  /// The next line with its line end, if it has one; std::nullopt at the end. Valid until the next call.
  /// @throws InputError naming the line for bytes that are not UTF-8, and as ByteStream::read().
  std::optional<std::string_view> next();

  /// "FILE, line N".
  std::string place(int64_t line) const;
  /// Of the line that next() gave, from 1.
  int64_t number() const { return number_; }
  /// Bytes of the file on disk that have been read.
  int64_t consumed() const { return stream_.consumed(); }
  const std::string& operation() const { return operation_; }

 private:
  std::string name_, operation_;
  ByteStream stream_;
  std::string buffer_;
  size_t taken_ = 0, scanned_ = 0;
  int64_t number_ = 0;
};

class JsonLines {
 public:
  /// As LineReader.
  JsonLines(const std::string& path, std::string operation) : lines_(path, std::move(operation)) {}

  /// The next line's object; std::nullopt at the end. Blank lines are skipped.
  /// @throws InputError naming the line, for one that is not a JSON object, and as LineReader.
  std::optional<Json> next();

  int64_t line() const { return lines_.number(); }
  /// "FILE, line N", of the object that next() gave.
  std::string place() const { return lines_.place(lines_.number()); }
  int64_t consumed() const { return lines_.consumed(); }

 private:
  LineReader lines_;
};

}  // namespace prism
