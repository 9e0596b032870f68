// Records: JSONL files, one object per line. Reports read nothing else from a computation.
//
//   RecordWriter records(folder / "records.jsonl");
//   records.write({{"kind", "train"}, {"step", 10}, {"tokens", 40960}, {"seconds", 1.5}, {"loss", 4.2}});
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <vector>

#include "prism/core/fields.h"
#include "prism/core/files.h"

namespace prism {

/// Appends records to a file. Each record goes to the system when it is written.
class RecordWriter {
 public:
  /// @param keep_bytes  the file is first truncated to this length, which a checkpoint recorded; -1 keeps all complete
  ///                    lines.
  /// @throws FailedError if the file cannot be opened; InputError if it is shorter than keep_bytes.
  explicit RecordWriter(const std::filesystem::path& path, int64_t keep_bytes = -1);

  /// @throws FailedError if the disk is full.
  void write(const Json& record);
  /// Calls fsync and returns the length of the file so far, for a checkpoint.
  int64_t sync();

 private:
  std::filesystem::path path_;
  Descriptor file_;
  int64_t bytes_ = 0;
};

/// All complete records of a file. A last line without a newline, left by a killed writer, is ignored.
/// @param is_cut  if given, set to true if there was such a line, else to false.
/// @param bytes   if given, reads only this many bytes from the beginning, as a checkpoint recorded them.
/// @throws InputError naming the line that is not a JSON object; InputError if the file is shorter than `bytes`, or if
///         no line ends there.
std::vector<Json> read_records(const std::filesystem::path& path, bool* is_cut = nullptr,
                               std::optional<int64_t> bytes = {});

}  // namespace prism
