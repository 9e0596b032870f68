#include "prism/training/recorder.h"

namespace prism {

void Recorder::open(const std::filesystem::path& run, int64_t keep_bytes, std::optional<int64_t> board_step) {
  records_ = std::make_unique<RecordWriter>(run / kRunRecordsName, keep_bytes);
  if (board_step) board_.emplace(run, *board_step);
}

void Recorder::keep(const RunEvent& event) {
  records_->write(run_event_to_json(event));
  if (board_) board_->add(event);
}

void Recorder::keep_parameters(int64_t step, const std::vector<WeightEntry>& weights) {
  if (board_) board_->add_parameters(step, weights);
}

}  // namespace prism
