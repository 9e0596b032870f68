#include "prism/training/recorder.h"

#include "prism/training/recipe.h"

namespace prism {

void Recorder::open(const std::filesystem::path& run, int64_t keep_bytes, std::optional<int64_t> board_step) {
  records_ = std::make_unique<RecordWriter>(run / kRunRecordsName, keep_bytes);
  if (board_step) board_.emplace(run, *board_step);
}

void Recorder::keep(const Json& record) {
  records_->write(record);
  if (board_) board_->add(record);
}

void Recorder::keep_parameters(int64_t step, const std::vector<WeightEntry>& weights) {
  if (board_) board_->add_parameters(step, weights);
}

}  // namespace prism
