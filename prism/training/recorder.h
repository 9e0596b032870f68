// Where a run's records go: records.jsonl, and TensorBoard's event files beside it.
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
  /// @param keep_bytes   of the records, whose length a checkpoint recorded; what follows is cut off.
  /// @param board_step   the first step that TensorBoard is still to be told of; absent: no event files.
  void open(const std::filesystem::path& run, int64_t keep_bytes, std::optional<int64_t> board_step);

  /// Writes a record, for TensorBoard too. @throws FailedError when the disk is full.
  void keep(const RunEvent& event);
  /// Length of the records so far, after fsync: what a checkpoint stores.
  int64_t sync() { return records_->sync(); }
  /// Histograms of weights and of the gradients that are there.
  void keep_parameters(int64_t step, const std::vector<WeightEntry>& weights);

 private:
  std::unique_ptr<RecordWriter> records_;
  std::optional<TensorBoard> board_;
};

}  // namespace prism
