// The answers of an evaluation in files, in the layout of lm-evaluation-harness: a row for each item in
// samples_TASK_prism.jsonl, and the figures in results_prism.json. An interrupted evaluation reads its rows back.
//
//   SampleFile file(folder / "samples_piqa_prism.jsonl", task, items);
//   if (file.answers().size() < items.size()) file.append(more);
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include "prism/core/fields.h"
#include "prism/core/files.h"
#include "prism/evaluation/tasks/answers.h"
#include "prism/evaluation/tasks/figures.h"
#include "prism/evaluation/tasks/task.h"

namespace prism {

class SampleFile {
 public:
  /// Reads the rows that are there; a last row that was cut short is dropped.
  /// @param items  must outlive this.
  /// @throws InputError for rows of other items or prompts, for a link, and for a file of another program.
  SampleFile(std::filesystem::path path, Task task, std::span<const TaskItem> items);

  /// Of the first items.
  const std::vector<ItemAnswers>& answers() const { return answers_; }
  /// Drops the rows of all items but the first `count`.
  void truncate(size_t count);
  /// Writes the rows of the next items. @throws WriteError.
  void append(std::span<const ItemAnswers> answers);

 private:
  std::filesystem::path path_;
  Task task_;
  std::span<const TaskItem> items_;
  std::vector<ItemAnswers> answers_;
  std::vector<uint64_t> ends_;  ///< of the rows in the file, in bytes
};

/// Answers all items: those that the file has are read, the others computed in batches and written.
/// @param file        null: nothing is written.
/// @param on_batch    called after each batch with the number of items done.
/// @throws as TaskModel::answer().
std::vector<ItemAnswers> answer_all(TaskModel& model, const Task& task, std::span<const TaskItem> items,
                                    SampleFile* file, const Scorer::OnStep& on_step,
                                    const std::function<void(int64_t)>& on_batch);

/// The figures of one task.
struct TaskFigures {
  Task task;
  std::vector<Figure> figures;
  int64_t items = 0, cut = 0, shots = 0;  ///< cut: items of which a text was cut
  KeptCounts kept = {};                   ///< kept_of() its answers
};

/// results_prism.json. @param settings  what the figures depend on, for its member "config".
/// @param before  an earlier file, whose other tasks are kept, and groups whose parts are as they were; null: none.
Json results_to_json(const std::vector<TaskFigures>& tasks, const Json& settings, const Json& before);

/// The figures of groups: of each group of which all parts are there.
std::vector<std::pair<std::string, Figure>> groups_of(const std::vector<TaskFigures>& tasks);

}  // namespace prism
