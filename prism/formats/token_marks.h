// Marks of the tokens of a shard, one byte each, in a file beside it: train_000000.bin has train_000000.marks.
//
//   TokenMarksWriter writer(marks_file("train_000000.bin"));  writer.write(marks);  writer.commit();
//   TokenMarks marks(marks_file("train_000000.bin"), shard.size());  bool learns = marks[0] & kAssistantMark;
//
// The file is a header of 16 bytes, little-endian (int32 magic, int32 version, int64 count), and then the marks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "prism/core/files.h"
#include "prism/core/mapped_file.h"

namespace prism {

/// The bits of a mark.
constexpr uint8_t kAssistantMark = 1;  ///< the assistant wrote the token, so a model learns to predict it
constexpr uint8_t kOpeningMark = 2;    ///< the token begins a document

/// The file of a shard's marks.
std::filesystem::path marks_file(std::filesystem::path shard);

/// The mapped marks of one shard.
class TokenMarks {
 public:
  /// @param tokens  size of the shard.
  /// @throws InputError for a file that is absent or no file of marks, and for another number of marks than `tokens`.
  TokenMarks(const std::filesystem::path& path, int64_t tokens);

  uint8_t operator[](int64_t i) const { return marks_[static_cast<size_t>(i)]; }
  /// See MappedFile::check_whole().
  void check_whole() const { file_.check_whole(); }

 private:
  MappedFile file_;
  std::span<const uint8_t> marks_;
};

/// Appends marks to a new file, which has a temporary name until commit().
class TokenMarksWriter {
 public:
  explicit TokenMarksWriter(const std::filesystem::path& path);
  void write(std::span<const uint8_t> marks);
  /// Writes the header, calls fsync and renames.
  void commit();

 private:
  AtomicFile file_;
  int64_t size_ = 0;
};

}  // namespace prism
