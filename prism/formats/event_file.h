// Writes TensorBoard's event files: scalars, histograms and texts by step, which stock TensorBoard shows.
//
//   EventFile events("runs/novels", /*first_step=*/0);
//   events.scalar(10, "train/loss", 4.2);
//   events.histogram(100, "weights/lm_head", {.low = -1, .high = 1, .counts = counts, .sum = sum, .squares = squares});
//   events.flush();
//
// A file is a list of records (length, CRC-32C of it, data, CRC-32C of it; the CRCs masked as TFRecord does), each a
// protocol buffer of type Event: tensorflow/core/util/event.proto and summary.proto of TensorFlow 2.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "prism/core/files.h"

namespace prism {

/// Histogram with bins of equal width over [low, high].
struct ValueHistogram {
  double low = 0, high = 0;
  std::vector<int64_t> counts;
  double sum = 0, squares = 0;  ///< sum of the values, sum of their squares
};

class EventFile {
 public:
  /// Creates a new file in `folder`, named by time and process. It tells TensorBoard to hide what the folder's other
  /// files contain from `first_step` on, for a run that resumes there.
  /// @throws FailedError if the file cannot be created.
  EventFile(const std::filesystem::path& folder, int64_t first_step);

  void scalar(int64_t step, std::string_view tag, double value);
  void text(int64_t step, std::string_view tag, std::string_view text);
  void histogram(int64_t step, std::string_view tag, const ValueHistogram& values);
  /// Writes out what is buffered. @throws FailedError if the disk is full.
  void flush();
  const std::filesystem::path& path() const { return path_; }

 private:
  /// @param event  without wall time and step.
  void add(int64_t step, const std::string& event);

  std::filesystem::path path_;
  Descriptor file_;
  std::string kept_;
};

}  // namespace prism
