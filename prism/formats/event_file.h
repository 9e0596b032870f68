// TensorBoard's event files: scalars, histograms and texts over steps, which stock TensorBoard shows.
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

/// How often values fell into each of equal parts of [low, high].
struct ValueHistogram {
  double low = 0, high = 0;
  std::vector<int64_t> counts;
  double sum = 0, squares = 0;  ///< of the values, and of their squares
};

class EventFile {
 public:
  /// A new file in `folder`, named by time and process. What other files of the folder hold of `first_step` and later
  /// ones, of a run that goes on from there, is no longer shown.
  /// @throws FailedError if it cannot be made.
  EventFile(const std::filesystem::path& folder, int64_t first_step);

  void scalar(int64_t step, std::string_view tag, double value);
  void text(int64_t step, std::string_view tag, std::string_view text);
  void histogram(int64_t step, std::string_view tag, const ValueHistogram& values);
  /// Hands on what is kept. @throws FailedError when the disk is full.
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
