// Documents out of text files: .txt and .jsonl, plain or packed (.gz, .xz, .zst), files, folders or standard input.
//
//   TextSource source({"novels.txt.xz", "web/"}, {.separator = R"(\n\n\n\n)"});
//   while (std::optional<Document> document = source.next()) count += document->text.size();
//
// Memory stays bounded whatever the size of a file: a long document comes in pieces, see Document and piece_length().
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
  /// Bytes as they are: only a file whose name says so is unpacked, and a byte-order mark is text. Not a field.
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

/// A document, or a piece of a long one: pieces follow one another, the first has `first`, the last has `last`.
struct Document {
  std::string text;  ///< never empty
  bool first = true, last = true;
};

/// One file to read.
struct TextFile {
  std::string path;   ///< "-": standard input
  bool rows = false;  ///< JSONL
  int64_t bytes = 0;  ///< as it lies on the disk; 0 for standard input
};

/// The files behind `inputs`: a file, "-", or a folder (every text file below it, sorted by path; hidden ones and those
/// of other endings are passed over).
/// @param skipped  if given, becomes the number of files passed over for their ending.
/// @throws InputError for a path that is absent or unreadable, a file named outright whose ending is unknown (way out:
///         format), a folder without text, an option with an unknown value.
std::vector<TextFile> list_text_files(const std::vector<std::string>& inputs, const TextOptions& options,
                                      int64_t* skipped = nullptr);

/// The separator as a user types it: \n, \r, \t, \\ and \xHH stand for their characters.
/// @throws InputError for any other escape.
std::string parse_separator(std::string_view typed);

/// Where a document is cut when only `piece_bytes` of it are wanted.
///
/// The last place in [piece_bytes / 2, piece_bytes], else the first behind it, that lies
///   in front of a space or tab behind a character that is no white space, or
///   behind a single newline between two characters that are no white space.
/// The pre-tokenizer patterns of GPT-2, Llama 3 and Qwen end a piece there whatever follows, and NFC joins nothing
/// across it, so the ids of the pieces are those of the whole. They may differ where an added token with white space
/// inside straddles the place or takes the white space behind it (`rstrip`), under a tokenizer without such a pattern,
/// and where 4 * piece_bytes hold no such place: then the cut is at any character.
///
/// @param text  the rest of the document, or at least 4 * piece_bytes + 8 bytes of it.
size_t piece_length(std::string_view text, size_t piece_bytes);

/// A stream of documents. Empty documents are left out and counted.
class TextSource {
 public:
  /// @throws InputError as list_text_files and parse_separator.
  explicit TextSource(const std::vector<std::string>& inputs, TextOptions options = {});
  TextSource(std::vector<TextFile> files, TextOptions options);
  ~TextSource();
  TextSource(TextSource&&) noexcept;
  TextSource& operator=(TextSource&&) noexcept;

  /// The next document or piece; nothing at the end.
  /// @throws InputError naming file and place: bytes that are not UTF-8 (with invalid_utf8 = error), a row that is no
  ///         JSON object or lacks the field, a packed stream that is damaged or cut short, a file that cannot be read.
  std::optional<Document> next();

  /// From any thread: a next() that waits for more of a pipe gives up with a FailedError.
  void cancel();

  /// Size of all files as they lie on the disk; 0 when standard input is one of them.
  int64_t bytes_total() const;
  /// How much of that has been read.
  int64_t bytes_read() const;
  /// Files and rows without any text so far.
  int64_t empty_documents() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace prism
