// Writes a run's records to records.jsonl and to TensorBoard's event files beside it.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "prism/core/records.h"
#include "prism/training/tensorboard.h"

namespace prism {

class Recorder {
 public:
  /// @param keep_bytes   length of the existing records to keep, taken from the checkpoint; the rest is cut off.
  /// @param board_step   the first step to write for TensorBoard; std::nullopt: no event files.
  void open(const std::filesystem::path& run, int64_t keep_bytes, std::optional<int64_t> board_step);

  /// Writes a record to both. @throws FailedError when the disk is full.
  void keep(const RunEvent& event);
  /// Flushes the records to disk and returns their length, which a checkpoint stores.
  int64_t sync() { return records_->sync(); }
  /// Writes histograms of the weights and of their gradients, where defined.
  void keep_parameters(int64_t step, const std::vector<WeightEntry>& weights);

 private:
  std::unique_ptr<RecordWriter> records_;
  std::optional<TensorBoard> board_;
};

}  // namespace prism
