#include "prism/formats/token_marks.h"

#include <cstring>

#include "prism/core/error.h"

namespace prism {
namespace {

struct MarksHeader {
  int32_t magic = 0, version = 0;
  int64_t count = 0;
};
static_assert(sizeof(MarksHeader) == 16);

constexpr int32_t kMarksMagic = 20261126, kMarksVersion = 1;

}  // namespace

std::filesystem::path marks_file(std::filesystem::path shard) {
  return shard.replace_extension(".marks");
}

TokenMarks::TokenMarks(const std::filesystem::path& path, int64_t tokens) {
  PRISM_CHECK(is_there(path), "token_marks",
              "expected the marks of a shard in {}; found none; restore the file, or run prism tokenize --chat again.",
              path.string());
  file_ = MappedFile(path);
  const auto bytes = file_.bytes();
  MarksHeader header;
  if (bytes.size() >= sizeof(header)) std::memcpy(&header, bytes.data(), sizeof(header));
  PRISM_CHECK(header.magic == kMarksMagic && header.version == kMarksVersion, "token_marks",
              "{}: expected magic {} version {}; found {} version {}; make the file with prism tokenize --chat.",
              path.string(), kMarksMagic, kMarksVersion, header.magic, header.version);
  const size_t expected = sizeof(header) + static_cast<size_t>(tokens);
  PRISM_CHECK(
      header.count == tokens && bytes.size() == expected, "token_marks",
      "{}: expected {} marks, one for each token of the shard, in {} bytes; found {} in {}; write or fetch both "
      "files again.",
      path.string(), tokens, expected, header.count, bytes.size());
  marks_ = {reinterpret_cast<const uint8_t*>(bytes.data()) + sizeof(header), static_cast<size_t>(tokens)};
}

TokenMarksWriter::TokenMarksWriter(const std::filesystem::path& path) : file_(path) {
  // The header is zero until commit(), so a file whose writer died has no magic.
  const MarksHeader header;
  file_.write(&header, sizeof(header));
}

void TokenMarksWriter::write(std::span<const uint8_t> marks) {
  file_.write(marks.data(), marks.size());
  size_ += static_cast<int64_t>(marks.size());
}

void TokenMarksWriter::commit() {
  const MarksHeader header = {kMarksMagic, kMarksVersion, size_};
  file_.write_at(0, &header, sizeof(header));
  file_.commit();
}

}  // namespace prism
