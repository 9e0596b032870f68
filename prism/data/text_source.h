// Reads documents from text files: .txt and .jsonl, plain or packed (.gz, .xz, .zst), files, folders or standard input.
//
//   TextSource source({"novels.txt.xz", "web/"}, {.separator = R"(\n\n\n\n)"});
//   while (std::optional<Document> document = source.next()) count += document->text.size();
//
// Memory is bounded for files of any size: a long document arrives in pieces, see Document and piece_length().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace prism {

struct TextOptions {
  std::string format = "auto", field = "text", separator, invalid_utf8 = "error";
  int64_t piece_bytes = 1 << 20;
  /// Read the bytes unchanged: only a file whose name says so is unpacked, and a byte-order mark is kept. Not a field.
  bool raw = false;
  template <class Visitor>
  void visit(Visitor& v) {
    v("format", format, "txt, jsonl, or auto: by the file name's ending; standard input is txt");
    v("field", field, "member of a .jsonl row that holds the text");
    v("separator", separator,
      R"(text between documents of a .txt, e.g. \n\n\n\n; \r, \t, \\ and \xHH as in C; empty: one document per file)");
    v("invalid_utf8", invalid_utf8,
      "what to do with text that is not UTF-8: error, keep (its bytes) or replace (by U+FFFD)");
    v("piece_bytes", piece_bytes, "longer documents are processed in pieces of about this many bytes");
  }
};

/// A document, or a piece of a long one. Pieces arrive in order; the first has `first` set, the last `last`.
struct Document {
  std::string text;  ///< never empty
  bool first = true, last = true;
};

/// One file to read.
struct TextFile {
  std::string path;   ///< "-" is standard input
  bool rows = false;  ///< true for JSONL
  int64_t bytes = 0;  ///< size on disk; 0 for standard input
};

/// Lists the files of `inputs`. An input is a file, "-", or a folder, which stands for every text file below it, sorted
/// by path; hidden files and those with other endings are skipped.
/// @param skipped  if given, receives the number of files skipped because of their ending.
/// @throws InputError for a path that is absent or unreadable, a file given by name whose ending is unknown (way out:
///         format), a folder without text, or an option with an unknown value.
std::vector<TextFile> list_text_files(const std::vector<std::string>& inputs, const TextOptions& options,
                                      int64_t* skipped = nullptr);

/// The separator as a user types it: \n, \r, \t, \\ and \xHH stand for their characters.
/// @throws InputError for any other escape.
std::string parse_separator(std::string_view typed);

/// Where a document is cut if only `piece_bytes` of it are wanted.
///
/// The last position in [piece_bytes / 2, piece_bytes], else the first after it, that lies
///   before a space or tab that follows a character other than white space, or
///   after a single newline between two characters other than white space.
/// The pre-tokenizer patterns of GPT-2, Llama 3 and Qwen end a piece there whatever follows, and NFC joins nothing
/// across it, so the ids of the pieces are those of the whole document. They may differ if an added token contains
/// white space at that position or takes the white space after it (`rstrip`), if the tokenizer has no such pattern, or
/// if 4 * piece_bytes contain no such position; the cut is then between any two characters.
///
/// @param text  the rest of the document, or at least 4 * piece_bytes + 8 bytes of it.
size_t piece_length(std::string_view text, size_t piece_bytes);

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
