#include "prism/data/document_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "prism/core/error.h"
#include "prism/core/text/names.h"
#include "prism/core/text/utf8.h"
#include "prism/data/byte_stream.h"
#include "prism/data/pieces.h"

namespace prism {
namespace {

constexpr size_t kReadBytes = 1 << 18;
constexpr size_t kLookahead = 8;
/// A row is parsed as a whole, so this bounds the memory.
constexpr size_t kMaxRowBytes = size_t{1} << 28;

/// The unpacked bytes of one file. Keeps only as many of them in memory as requested.
class TextBuffer {
 public:
  /// @param raw  see TextOptions.
  TextBuffer(const std::string& path, bool raw, const std::atomic<bool>* cancelled)
      : stream_(path, raw ? Unpack::by_name : Unpack::by_content, cancelled) {
    if (raw) return;
    fill(kByteOrderMark.size());
    if (view().starts_with(kByteOrderMark)) drop(kByteOrderMark.size());
  }

  std::string_view view() const { return std::string_view(bytes_).substr(begin_); }
  bool ended() const { return ended_; }
  int64_t offset() const { return offset_; }
  int64_t consumed() const { return stream_.consumed(); }

  /// Reads until view() has `size` bytes or the file has ended.
  void fill(size_t size) {
    if (ended_ || view().size() >= size) return;
    bytes_.erase(0, std::exchange(begin_, 0));
    // Reads ahead. Otherwise every short document would move the whole buffer to make room for its own length.
    size += kReadBytes;
    while (bytes_.size() < size) {
      const size_t have = bytes_.size();
      bytes_.resize(have + kReadBytes);
      const size_t count = stream_.read(bytes_.data() + have, kReadBytes);
      bytes_.resize(have + count);
      if (count == 0) {
        ended_ = true;
        return;
      }
    }
  }

  void drop(size_t count) {
    begin_ += count;
    offset_ += static_cast<int64_t>(count);
  }

 private:
  static constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

  ByteStream stream_;
  std::string bytes_;
  size_t begin_ = 0;
  int64_t offset_ = 0;  ///< of the start of view() in the unpacked file
  bool ended_ = false;
};

/// Handles bytes that are not UTF-8 as the options say.
class Utf8Check {
 public:
  explicit Utf8Check(const std::string& name) : name_(name) {}

  bool replaces() const { return name_ == "replace"; }

  /// @param offset  of the text in its file. @param line  number of the row, 0 for plain text.
  void apply(std::string& text, const std::string& path, int64_t offset, int64_t line = 0) const {
    const bool kept = name_ == "keep" && line == 0;
    const size_t at = kept ? std::string::npos : find_invalid_utf8(text);
    if (at == std::string::npos) return;
    if (replaces()) {
      text = replace_invalid_utf8(text);
      return;
    }
    const bool wide = offset == 0 && (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"));
    const char* way_out = wide        ? "the file looks like UTF-16, convert it with iconv -f UTF-16 -t UTF-8"
                          : line == 0 ? "correct it, or pass --invalid-utf8 keep or replace"
                                      : "correct it, or pass --invalid-utf8 replace (JSON rows cannot keep such bytes)";
    throw InputError("text", fmt::format("{}: expected text in UTF-8; found byte 0x{:02X} at byte offset {}{}; {}.",
                                         path, static_cast<uint8_t>(text[at]), offset + static_cast<int64_t>(at),
                                         line == 0 ? "" : fmt::format(" (line {})", line), way_out));
  }

 private:
  std::string name_;
};

/// What the readers of both formats have.
class BufferedReader : public DocumentReader {
 public:
  BufferedReader(const TextFile& file, bool raw, const std::atomic<bool>* cancelled)
      : path_(file.path == "-" ? "standard input" : file.path), buffer_(file.path, raw, cancelled) {}
  int64_t consumed() const override { return buffer_.consumed(); }
  int64_t empty_documents() const override { return empty_documents_; }

 protected:
  std::string path_;
  TextBuffer buffer_;
  int64_t empty_documents_ = 0;
};

class PlainReader : public BufferedReader {
 public:
  PlainReader(const TextFile& file, const TextOptions& options, std::string separator,
              const std::atomic<bool>* cancelled)
      : BufferedReader(file, options.raw, cancelled),
        separator_(std::move(separator)),
        check_(options.invalid_utf8),
        piece_bytes_(static_cast<size_t>(options.piece_bytes)) {}

  std::optional<Document> next() override {
    skip_separators();
    if (buffer_.view().empty()) {
      if (!found_text_) ++empty_documents_;
      return std::nullopt;
    }
    const size_t end = document_end();  // changes what view() shows
    const std::string_view rest = buffer_.view().substr(0, end);
    const size_t length = piece_length(rest, piece_bytes_);
    Document piece{std::string(rest.substr(0, length)), !inside_, length == rest.size()};
    check_.apply(piece.text, path_, buffer_.offset());
    inside_ = !piece.last;
    found_text_ = true;
    buffer_.drop(length);
    return piece;
  }

 private:
  /// Enough to contain every separator up to the longest piece completely, however many bytes each read returns.
  size_t window() const { return kLongestPiece * piece_bytes_ + std::max(separator_.size(), kLookahead); }

  /// Skips separators between two documents, since documents without text are not returned.
  void skip_separators() {
    if (inside_) return;
    for (;;) {
      buffer_.fill(std::max<size_t>(separator_.size(), 1));
      if (separator_.empty() || !buffer_.view().starts_with(separator_)) return;
      buffer_.drop(separator_.size());
    }
  }

  /// End of the document in view(), or the end of view() if the document continues after it.
  size_t document_end() {
    size_t end = find_separator();
    if (end > piece_bytes_ || end == std::string_view::npos) {
      buffer_.fill(window());
      end = find_separator();
    }
    return end;
  }

  size_t find_separator() const {
    return separator_.empty() ? std::string_view::npos : buffer_.view().find(separator_);
  }

  std::string separator_;
  Utf8Check check_;
  size_t piece_bytes_;
  bool inside_ = false, found_text_ = false;
};

class RowReader : public BufferedReader {
 public:
  RowReader(const TextFile& file, const TextOptions& options, const std::atomic<bool>* cancelled)
      : BufferedReader(file, options.raw, cancelled),
        field_(options.field),
        has_flags_(options.has_flags),
        whole_rows_(options.whole_rows),
        check_(options.invalid_utf8),
        piece_bytes_(static_cast<size_t>(options.piece_bytes)) {}

  std::optional<Document> next() override {
    while (begin_ == text_.size()) {
      if (!read_row()) return std::nullopt;
    }
    if (whole_rows_) {
      begin_ = text_.size();
      return Document{text_, true, true, fmt::format("{}:{}", path_, line_)};
    }
    const std::string_view rest = std::string_view(text_).substr(begin_);
    const size_t length = piece_length(rest, piece_bytes_);
    Document piece{std::string(rest.substr(0, length)), begin_ == 0, length == rest.size()};
    begin_ += length;
    return piece;
  }

 private:
  /// Reads the next line that is not blank into text_. Returns false at the end of the file.
  bool read_row() {
    const std::optional<std::string> line = read_line();
    if (!line) return false;
    const bool blank = line->find_first_not_of(" \t\r") == std::string::npos;
    text_ = blank ? "" : whole_rows_ ? *line : parse_row(*line);
    begin_ = 0;
    return true;
  }

  std::optional<std::string> read_line() {
    size_t end = buffer_.view().find('\n');
    while (end == std::string_view::npos && !buffer_.ended()) {
      const size_t have = buffer_.view().size();
      PRISM_CHECK(have <= kMaxRowBytes, "text",
                  "{}:{}: expected rows of at most {} bytes; found a longer one; write one object a line.", path_,
                  line_ + 1, kMaxRowBytes);
      buffer_.fill(2 * have + 1);
      end = buffer_.view().find('\n', have);
    }
    if (buffer_.view().empty()) return std::nullopt;
    std::string line(buffer_.view().substr(0, end));
    ++line_;
    check_.apply(line, path_, buffer_.offset(), line_);
    buffer_.drop(end == std::string_view::npos ? buffer_.view().size() : end + 1);
    return line;
  }

  std::string parse_row(const std::string& line) {
    const auto row = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    PRISM_CHECK(row.is_object(), "text", "{}:{}: expected a JSON object; found {}; correct or remove the line.", path_,
                line_, row.is_discarded() ? "text that is not JSON" : row.type_name());
    const auto member = row.find(field_);
    if (member == row.end()) fail_field(row);
    PRISM_CHECK(member->is_string(), "text", "{}:{}: expected the field \"{}\" to be text; found {}; name another {}.",
                path_, line_, field_, member->type_name(), has_flags_ ? "with --field" : "file");
    const auto& text = member->get_ref<const std::string&>();
    if (text.empty()) ++empty_documents_;
    return text;
  }

  [[noreturn]] void fail_field(const nlohmann::json& row) const {
    std::vector<std::string> names;
    for (const auto& [name, value] : row.items()) names.push_back(name);
    throw InputError("text",
                     fmt::format("{}:{}: expected a field \"{}\"; found {}; {}.", path_, line_, field_,
                                 names.empty() ? "none" : join_names(names),
                                 has_flags_ ? "name the field that holds the text with --field" : "name another file"));
  }

  std::string field_;
  bool has_flags_, whole_rows_;
  Utf8Check check_;
  size_t piece_bytes_;
  std::string text_;  ///< of the current row
  size_t begin_ = 0;  ///< bytes of it that have been returned
  int64_t line_ = 0;
};

}  // namespace

std::unique_ptr<DocumentReader> open_documents(const TextFile& file, const TextOptions& options,
                                               const std::string& separator, const std::atomic<bool>* cancelled) {
  if (file.rows) return std::make_unique<RowReader>(file, options, cancelled);
  return std::make_unique<PlainReader>(file, options, separator, cancelled);
}

}  // namespace prism
