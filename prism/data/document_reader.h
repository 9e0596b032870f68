// Reads the documents of one text file, in order and in pieces.
//
//   const auto reader = open_documents(file, options, parse_separator(options.separator), &cancelled);
//   while (std::optional<Document> document = reader->next()) count += document->text.size();
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "prism/data/text_files.h"

namespace prism {

/// A document, or a piece of a long one. Pieces arrive in order; the first has `first` set, the last `last`.
struct Document {
  std::string text;  ///< never empty
  bool first = true, last = true;
  std::string place = {};  ///< file and line of a whole row (TextOptions::whole_rows)
};

/// The documents of one file.
class DocumentReader {
 public:
  virtual ~DocumentReader() = default;
  /// The next document or piece; std::nullopt at the end. @throws InputError as TextSource::next().
  virtual std::optional<Document> next() = 0;
  /// Bytes of the file on disk that have been read.
  virtual int64_t consumed() const = 0;
  /// Number of files and rows without text so far.
  virtual int64_t empty_documents() const = 0;
};

/// @param separator  text between documents of a .txt file; empty: one document.
/// @param cancelled  if it becomes true, a next() that waits for more of a pipe throws FailedError.
std::unique_ptr<DocumentReader> open_documents(const TextFile& file, const TextOptions& options,
                                               const std::string& separator, const std::atomic<bool>* cancelled);

}  // namespace prism
