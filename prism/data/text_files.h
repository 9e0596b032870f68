// Text files: .txt and .jsonl, plain or packed (.gz, .xz, .zst), found in folders or named, and how they are read.
//
//   const std::vector<TextFile> files = list_text_files({"novels.txt.xz", "web/"}, {});
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace prism {

struct TextOptions {
  std::string format = "auto", field = "text", separator, invalid_utf8 = "error";
  int64_t piece_bytes = 1 << 20;
  /// Read the bytes unchanged: only a file whose name says so is unpacked, and a byte-order mark is kept. Not a field.
  bool raw = false;
  /// Whether the command has flags for these fields. If not, a file given by name without a known ending is text, and
  /// messages advise no flags. Not a field.
  bool has_flags = true;
  /// Return each row of a .jsonl file as it is, in one piece, with its place. Files given by name and standard input
  /// then have rows whatever they are called, and folders are searched for .jsonl alone. Not a field.
  bool whole_rows = false;
  template <class Visitor>
  void visit(Visitor& v) {
    v("format", format, "format of the files: txt, jsonl, or auto (by the file name's ending; standard input is txt)");
    v("field", field, "member of a .jsonl row that holds the text");
    v("separator", separator,
      R"(text between documents of a .txt, e.g. \n\n\n\n; \r, \t, \\ and \xHH as in C; empty: one document per file)");
    v("invalid_utf8", invalid_utf8,
      "what to do with text that is not UTF-8: error, keep (its bytes) or replace (by U+FFFD)");
    v("piece_bytes", piece_bytes, "longer documents are processed in pieces of about this many bytes");
  }
};

/// One file to read.
struct TextFile {
  std::string path;   ///< "-" is standard input
  bool rows = false;  ///< true for JSONL
  int64_t bytes = 0;  ///< size on disk; 0 for standard input
};

/// Lists the files of `inputs`. An input is a file, "-", or a folder, which stands for every text file below it, sorted
/// by path; hidden files and those with other endings are skipped.
/// @param skipped  if given, receives the number of files skipped: those with other endings, pipes, links to nothing.
/// @throws InputError for a path that is absent or unreadable, a file given by name whose ending is unknown if there is
///         a flag that says what it is, a folder without text, or an option with an unknown value.
std::vector<TextFile> list_text_files(const std::vector<std::string>& inputs, const TextOptions& options,
                                      int64_t* skipped = nullptr);

/// The separator as a user types it: \n, \r, \t, \\ and \xHH stand for their characters.
/// @throws InputError for any other escape.
std::string parse_separator(std::string_view typed);

}  // namespace prism
