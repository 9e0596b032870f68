// Records: JSONL files, one object a line; all that crosses from computing to reporting.
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

/// Appends records to a file, each flushed to the system when written.
class RecordWriter {
 public:
  /// @param keep_bytes  the file is first cut to this length (what a checkpoint recorded); -1 keeps all whole lines.
  /// @throws FailedError if the file cannot be opened, InputError if it is shorter than keep_bytes.
  explicit RecordWriter(const std::filesystem::path& path, int64_t keep_bytes = -1);

  /// @throws FailedError when the disk is full.
  void write(const Json& record);
  /// Length of the file so far, after fsync: what a checkpoint stores.
  int64_t sync();

 private:
  std::filesystem::path path_;
  Descriptor file_;
  int64_t bytes_ = 0;
};

/// All whole records of a file; a last line without its newline (a writer was killed) is left out.
/// @param is_cut  if given, set to whether there was such a line.
/// @param bytes   if given, only the lines of this many bytes from the beginning, as a checkpoint recorded them.
/// @throws InputError naming the line that is no JSON object; for a file that is shorter than `bytes`, or has no end of
///         a line there.
std::vector<Json> read_records(const std::filesystem::path& path, bool* is_cut = nullptr,
                               std::optional<int64_t> bytes = {});

}  // namespace prism
