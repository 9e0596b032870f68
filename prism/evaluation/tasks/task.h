// Tasks of the field: what a model is asked about each item of a data set, and which answer is right. Prompts, requests
// and figures of all but perplexity are those of EleutherAI's lm-evaluation-harness 0.4.13.
//
//   for (const Task& task : find_tasks({"piqa", "blimp"})) items = read_items(task, "zero_shot", {});
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "prism/core/fields.h"

namespace prism {

/// What a task asks of a model.
enum class TaskKind {
  choice,      ///< the log-likelihoods of several continuations, of which the likeliest is the answer
  completion,  ///< the log-likelihood of one continuation, and whether the model would have written it
  rolling,     ///< the log-likelihood of a whole text
  halves,      ///< the same of the second half of each of its windows, as llama.cpp's perplexity
  windows,     ///< the same in windows of a length and at a distance that the user chooses
  generation,  ///< text until a stop string
};

/// A continuation to score; a whole text, if the context is not used; or a prompt, if the continuation is not.
struct TaskQuery {
  std::string context, continuation;
};

/// One row of a data set, as a question.
struct TaskItem {
  Json row = {};                          ///< as the file gives it
  std::vector<TaskQuery> queries = {};    ///< one for each choice, else one
  int64_t gold = 0;                       ///< the right choice
  std::vector<std::string> choices = {};  ///< texts of the choices, whose lengths acc_norm and acc_bytes divide by
  std::vector<std::string> targets = {};  ///< generation: any of these is right
  std::vector<std::string> stops = {};    ///< generation: text that ends an answer
  int64_t new_tokens = 0;                 ///< generation: most tokens of an answer; 0: 128, or half of the context
  int64_t words = 0, bytes = 0;           ///< rolling: units of the figures
};

struct Task {
  std::string name;
  std::string group = {};  ///< a name for several tasks, whose first figures are averaged; "": none
  TaskKind kind = TaskKind::choice;
  /// Files with the rows, relative to the data folder, of which the first that is there is read. JSONL, but text for
  /// wikitext; each may also end in .gz, .xz or .zst.
  std::vector<std::string> files = {};
  std::vector<std::string> figures = {};  ///< names, in the order in which they are shown
  /// @throws InputError for a row without what it needs. Empty for tasks whose items are made (evaluation/ruler).
  std::function<TaskItem(const Json& row)> item = {};
  double chance = 0;  ///< the accuracy of guessing; 0: not stated
  /// Labels that rows lack are in a file beside theirs: valid-labels.lst beside valid.jsonl.
  bool has_label_file = false;
  int64_t parts = 1;               ///< tasks of its group
  bool reads_texts = false;        ///< each text file of the data folder is an item
  double version = 1;              ///< of the harness's definition
  int64_t window = 0, stride = 0;  ///< windows: as TextWindowOptions, complete

  /// Returns true if an item is a whole text, not a question.
  bool is_text() const { return kind == TaskKind::rolling || kind == TaskKind::halves || kind == TaskKind::windows; }
  /// Returns true if an item's row describes its text, which may be a book, by size and fingerprint, and does not hold
  /// it.
  bool names_file() const { return reads_texts || kind == TaskKind::halves || kind == TaskKind::windows; }
};

/// The task whose items are a user's own texts.
constexpr const char* kPerplexity = "perplexity";

/// All tasks by name, those of a group after each other.
const std::vector<Task>& all_tasks();
/// Names of all tasks and groups.
std::vector<std::string> task_names();
/// The tasks of these names and groups, each once, in the order of the names.
/// @param others  names that are known elsewhere, for the message.
/// @throws InputError for an unknown name, with the nearest known one.
std::vector<Task> find_tasks(const std::vector<std::string>& names, const std::vector<std::string>& others = {});

/// The text of an item with its right answer, as it stands before later questions. In texts to complete two blanks
/// precede the answer: the harness's delimiter, and its own.
std::string shot_text(const Task& task, const TaskItem& item);

}  // namespace prism
