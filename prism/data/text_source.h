// Reads documents from text files: .txt and .jsonl, plain or packed (.gz, .xz, .zst), files, folders or standard input.
//
//   TextSource source({"novels.txt.xz", "web/"}, {.separator = R"(\n\n\n\n)"});
//   while (std::optional<Document> document = source.next()) count += document->text.size();
//
// Memory is bounded for files of any size: a long document arrives in pieces, see Document and piece_length().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "prism/data/document_reader.h"
#include "prism/data/text_files.h"

namespace prism {

/// A stream of documents. Empty documents are skipped and counted.
class TextSource {
 public:
  /// @throws InputError like list_text_files() and parse_separator().
  explicit TextSource(const std::vector<std::string>& inputs, TextOptions options = {});
  TextSource(std::vector<TextFile> files, TextOptions options);
  ~TextSource();
  TextSource(TextSource&&) noexcept;
  TextSource& operator=(TextSource&&) noexcept;

  /// The next document or piece; std::nullopt at the end.
  /// @throws InputError naming file and position: bytes that are not UTF-8 (if invalid_utf8 is error), a row that is
  ///         not a JSON object or lacks the field, a packed stream that is damaged or cut short, a file that cannot be
  ///         read.
  std::optional<Document> next();

  /// Makes a next() that waits for more of a pipe throw FailedError. May be called from any thread.
  void cancel();

  /// Total size on disk of all files; 0 if standard input is one of them.
  int64_t bytes_total() const;
  /// How many of these bytes have been read.
  int64_t bytes_read() const;
  /// Number of files and rows without text so far.
  int64_t empty_documents() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace prism
