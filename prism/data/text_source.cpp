#include "prism/data/text_source.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/text/names.h"
#include "prism/core/text/utf8.h"
#include "prism/data/byte_stream.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

constexpr size_t kReadBytes = 1 << 18;
/// A piece is at most this many times as long as requested.
constexpr size_t kLongestPiece = 4;
constexpr size_t kLookahead = 8;
/// A row is parsed as a whole, so this bounds the memory.
constexpr size_t kMaxRowBytes = size_t{1} << 28;

bool is_continuation(char byte) {
  return (static_cast<uint8_t>(byte) & 0xC0) == 0x80;
}

/// Returns true if any of the usual patterns treats the character as white space; control characters count as such.
bool is_white_space(std::string_view character) {
  using namespace std::string_view_literals;
  if (character.size() == 1) return static_cast<uint8_t>(character[0]) <= ' ';
  static constexpr std::array kSpaces = {"\xC2\x85"sv,     "\xC2\xA0"sv,     "\xE1\x9A\x80"sv,
                                         "\xE1\xA0\x8E"sv, "\xE2\x80\xA8"sv, "\xE2\x80\xA9"sv,
                                         "\xE2\x80\xAF"sv, "\xE2\x81\x9F"sv, "\xE3\x80\x80"sv};
  const bool quad = character.starts_with("\xE2\x80") && character >= "\xE2\x80\x80"sv && character <= "\xE2\x80\x8A"sv;
  return quad || std::find(kSpaces.begin(), kSpaces.end(), character) != kSpaces.end();
}

bool white_space_before(std::string_view text, size_t at) {
  size_t begin = at - 1;
  while (begin > 0 && at - begin < 4 && is_continuation(text[begin])) --begin;
  return is_white_space(text.substr(begin, at - begin));
}

bool white_space_at(std::string_view text, size_t at) {
  size_t end = at + 1;
  while (end < text.size() && end - at < 4 && is_continuation(text[end])) ++end;
  return is_white_space(text.substr(at, end - at));
}

/// Returns true at the two kinds of positions that piece_length() describes.
bool may_cut(std::string_view text, size_t at) {
  if (at < 2 || at >= text.size()) return false;
  if (text[at] == ' ' || text[at] == '\t') return !white_space_before(text, at);
  return text[at - 1] == '\n' && !white_space_before(text, at - 1) && !white_space_at(text, at);
}

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

/// The documents of one file.
class Reader {
 public:
  Reader(const TextFile& file, bool raw, const std::atomic<bool>* cancelled)
      : path_(file.path == "-" ? "standard input" : file.path), buffer_(file.path, raw, cancelled) {}
  virtual ~Reader() = default;
  virtual std::optional<Document> next() = 0;
  int64_t consumed() const { return buffer_.consumed(); }
  int64_t empty_documents() const { return empty_documents_; }

 protected:
  std::string path_;
  TextBuffer buffer_;
  int64_t empty_documents_ = 0;
};

class PlainReader : public Reader {
 public:
  PlainReader(const TextFile& file, const TextOptions& options, std::string separator,
              const std::atomic<bool>* cancelled)
      : Reader(file, options.raw, cancelled),
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

class RowReader : public Reader {
 public:
  RowReader(const TextFile& file, const TextOptions& options, const std::atomic<bool>* cancelled)
      : Reader(file, options.raw, cancelled),
        field_(options.field),
        check_(options.invalid_utf8),
        piece_bytes_(static_cast<size_t>(options.piece_bytes)) {}

  std::optional<Document> next() override {
    while (begin_ == text_.size()) {
      if (!read_row()) return std::nullopt;
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
    text_ = line->find_first_not_of(" \t\r") == std::string::npos ? "" : parse_row(*line);
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
    PRISM_CHECK(member->is_string(), "text",
                "{}:{}: expected the field \"{}\" to be text; found {}; name another with --field.", path_, line_,
                field_, member->type_name());
    const auto& text = member->get_ref<const std::string&>();
    if (text.empty()) ++empty_documents_;
    return text;
  }

  [[noreturn]] void fail_field(const nlohmann::json& row) const {
    std::vector<std::string> names;
    for (const auto& [name, value] : row.items()) names.push_back(name);
    throw InputError("text", fmt::format("{}:{}: expected a field \"{}\"; found {}; name the text's with --field.",
                                         path_, line_, field_, names.empty() ? "none" : join_names(names)));
  }

  std::string field_;
  Utf8Check check_;
  size_t piece_bytes_;
  std::string text_;  ///< of the current row
  size_t begin_ = 0;  ///< bytes of it that have been returned
  int64_t line_ = 0;
};

enum class Ending { text, rows, unknown };

Ending ending_of(const std::string& path, const TextOptions& options) {
  if (options.format == "txt" || (options.format == "auto" && path == "-")) return Ending::text;
  if (options.format == "jsonl") return Ending::rows;
  const std::string ending = fs::path(without_packed_ending(path)).extension().string();
  if (ending == ".txt") return Ending::text;
  if (ending == ".jsonl" || ending == ".ndjson") return Ending::rows;
  return Ending::unknown;
}

TextFile describe_file(const std::string& path, Ending ending) {
  TextFile file{path, ending == Ending::rows, 0};
  if (path == "-") return file;
  PRISM_CHECK(::access(path.c_str(), R_OK) == 0, "text",
              "expected a readable file at {}; found: {}; name another, or change its permissions.", path,
              std::strerror(errno));
  if (fs::is_regular_file(path)) file.bytes = static_cast<int64_t>(fs::file_size(path));
  return file;
}

std::vector<TextFile> list_folder(const std::string& folder, const TextOptions& options, int64_t* skipped) {
  std::vector<std::string> paths;
  std::error_code code;
  fs::recursive_directory_iterator walk(folder, code);
  for (; !code && walk != fs::recursive_directory_iterator(); walk.increment(code)) {
    const bool hidden = walk->path().filename().string().starts_with(".");
    std::error_code dangling;  // a link to nothing, or to itself, is not a file
    if (hidden && walk->is_directory(dangling)) walk.disable_recursion_pending();
    if (!hidden && walk->is_regular_file(dangling)) paths.push_back(walk->path().string());
  }
  PRISM_CHECK(!code, "text", "expected to list the folder {}; found: {}; name another, or change its permissions.",
              folder, code.message());
  std::sort(paths.begin(), paths.end());
  std::vector<TextFile> files;
  for (const std::string& path : paths) {
    const Ending ending = ending_of(path, options);
    if (ending != Ending::unknown) files.push_back(describe_file(path, ending));
  }
  PRISM_CHECK(
      !files.empty(), "text",
      "expected text files (.txt or .jsonl, plain or packed as .gz, .xz, .zst) in {}; found {} others; name the "
      "files, or pass --format txt or jsonl.",
      folder, paths.size());
  if (skipped != nullptr) *skipped += static_cast<int64_t>(paths.size() - files.size());
  return files;
}

void check_choice(const std::string& value, const char* flag, const std::vector<std::string>& known) {
  PRISM_CHECK(std::find(known.begin(), known.end(), value) != known.end(), "text",
              "expected --{} to be one of {}; found \"{}\"; choose one of them.", flag, join_names(known), value);
}

int hex_digit(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  const char lower = static_cast<char>(digit | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

}  // namespace

std::vector<TextFile> list_text_files(const std::vector<std::string>& inputs, const TextOptions& options,
                                      int64_t* skipped) {
  check_choice(options.format, "format", {"auto", "txt", "jsonl"});
  check_choice(options.invalid_utf8, "invalid-utf8", {"error", "keep", "replace"});
  PRISM_CHECK(options.piece_bytes >= 16 && options.piece_bytes <= (int64_t{1} << 30), "text",
              "expected pieces of 16 to {} bytes; found {}; choose another size.", int64_t{1} << 30,
              options.piece_bytes);
  if (skipped != nullptr) *skipped = 0;
  std::vector<TextFile> files;
  for (const std::string& input : inputs) {
    PRISM_CHECK(input == "-" || fs::exists(input), "text", "expected a file or folder at {}; found none; name another.",
                input);
    if (input != "-" && fs::is_directory(input)) {
      const auto inside = list_folder(input, options, skipped);
      files.insert(files.end(), inside.begin(), inside.end());
      continue;
    }
    const Ending ending = ending_of(input, options);
    PRISM_CHECK(ending != Ending::unknown, "text",
                "{}: expected an ending .txt or .jsonl, plain or with .gz, .xz or .zst; found another; say what it is "
                "with --format txt or jsonl.",
                input);
    files.push_back(describe_file(input, ending));
  }
  return files;
}

std::string parse_separator(std::string_view typed) {
  std::string separator;
  for (size_t i = 0; i < typed.size(); ++i) {
    if (typed[i] != '\\') {
      separator += typed[i];
      continue;
    }
    const char kind = ++i < typed.size() ? typed[i] : ' ';
    const int high = i + 2 < typed.size() ? hex_digit(typed[i + 1]) : -1;
    const int low = i + 2 < typed.size() ? hex_digit(typed[i + 2]) : -1;
    if (kind == 'n') {
      separator += '\n';
    } else if (kind == 'r') {
      separator += '\r';
    } else if (kind == 't') {
      separator += '\t';
    } else if (kind == '\\') {
      separator += '\\';
    } else if (kind == 'x' && high >= 0 && low >= 0) {
      separator += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      throw InputError(
          "text",
          fmt::format("expected the escapes \\n, \\r, \\t, \\\\ or \\xHH; found \"{}\"; write \\\\ for a backslash.",
                      typed));
    }
  }
  return separator;
}

size_t piece_length(std::string_view text, size_t piece_bytes) {
  if (text.size() <= piece_bytes) return text.size();
  for (size_t at = piece_bytes; at >= piece_bytes / 2; --at) {
    if (may_cut(text, at)) return at;
  }
  const size_t longest = kLongestPiece * piece_bytes;
  for (size_t at = piece_bytes + 1; at < std::min(text.size(), longest); ++at) {
    if (may_cut(text, at)) return at;
  }
  if (text.size() <= longest) return text.size();
  size_t at = longest;
  while (longest - at < 3 && is_continuation(text[at])) --at;
  return at;
}

class TextSource::Impl {
 public:
  Impl(std::vector<TextFile> files, TextOptions options)
      : files_(std::move(files)), options_(std::move(options)), separator_(parse_separator(options_.separator)) {}

  std::optional<Document> next() {
    for (;;) {
      if (reader_ == nullptr) {
        if (next_file_ == files_.size()) return std::nullopt;
        open(files_[next_file_++]);
      }
      if (auto document = reader_->next()) return document;
      bytes_before_ += reader_->consumed();
      empty_before_ += reader_->empty_documents();
      reader_.reset();
    }
  }

  int64_t bytes_total() const {
    int64_t total = 0;
    for (const TextFile& file : files_) {
      if (file.path == "-") return 0;
      total += file.bytes;
    }
    return total;
  }

  void cancel() { cancelled_ = true; }
  int64_t bytes_read() const { return bytes_before_ + (reader_ ? reader_->consumed() : 0); }
  int64_t empty_documents() const { return empty_before_ + (reader_ ? reader_->empty_documents() : 0); }

 private:
  void open(const TextFile& file) {
    if (file.rows) {
      reader_ = std::make_unique<RowReader>(file, options_, &cancelled_);
    } else {
      reader_ = std::make_unique<PlainReader>(file, options_, separator_, &cancelled_);
    }
  }

  std::vector<TextFile> files_;
  TextOptions options_;
  std::string separator_;
  std::atomic<bool> cancelled_ = false;
  std::unique_ptr<Reader> reader_;
  size_t next_file_ = 0;
  int64_t bytes_before_ = 0, empty_before_ = 0;
};

TextSource::TextSource(const std::vector<std::string>& inputs, TextOptions options)
    : TextSource(list_text_files(inputs, options), options) {}
TextSource::TextSource(std::vector<TextFile> files, TextOptions options)
    : impl_(std::make_unique<Impl>(std::move(files), std::move(options))) {}
TextSource::~TextSource() = default;
TextSource::TextSource(TextSource&&) noexcept = default;
TextSource& TextSource::operator=(TextSource&&) noexcept = default;

std::optional<Document> TextSource::next() {
  return impl_->next();
}

void TextSource::cancel() {
  impl_->cancel();
}

int64_t TextSource::bytes_total() const {
  return impl_->bytes_total();
}

int64_t TextSource::bytes_read() const {
  return impl_->bytes_read();
}

int64_t TextSource::empty_documents() const {
  return impl_->empty_documents();
}

}  // namespace prism
