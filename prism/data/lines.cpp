#include "prism/data/lines.h"

#include <array>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "prism/core/text/printable.h"
#include "prism/core/text/utf8.h"

namespace prism {

LineReader::LineReader(const std::string& path, std::string operation)
    : name_(path == "-" ? "standard input" : plain_line(path)), operation_(std::move(operation)), stream_(path) {}

std::optional<std::string_view> LineReader::next() {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  size_t end;
  while ((end = buffer_.find('\n', scanned_)) == std::string::npos) {
    scanned_ = buffer_.size();
    std::array<char, 1 << 16> part;
    const size_t count = stream_.read(part.data(), part.size());
    if (count == 0) break;
    buffer_.erase(0, taken_);
    scanned_ -= taken_;
    taken_ = 0;
    buffer_.append(part.data(), count);
  }
  if (taken_ == buffer_.size()) return std::nullopt;
  std::string_view line(buffer_);
  line = line.substr(taken_, end == std::string::npos ? end : end + 1 - taken_);
  taken_ = scanned_ = taken_ + line.size();
  if (++number_ == 1 && line.starts_with(kMark)) line.remove_prefix(kMark.size());
  PRISM_CHECK(find_invalid_utf8(line) == std::string_view::npos, operation_,
              "{}: expected UTF-8; found other bytes; convert the file.", place(number_));
  return line;
}

std::string LineReader::place(int64_t line) const {
  return fmt::format("{}, line {}", name_, line);
}

std::optional<Json> JsonLines::next() {
  while (const auto line = lines_.next()) {
    if (line->find_first_not_of(" \t\r\n") == std::string_view::npos) continue;
    Json json = parse_json(std::string(*line), place());
    PRISM_CHECK(json.is_object(), lines_.operation(), "{}: expected a JSON object; found {}; write one object a line.",
                place(), json.type_name());
    return json;
  }
  return std::nullopt;
}

}  // namespace prism
