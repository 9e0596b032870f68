// The items of a task, from its files.
//
//   const auto items = read_items(task, "zero_shot", {.limit = 200});
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "prism/data/text_source.h"
#include "prism/evaluation/tasks/task.h"

namespace prism {

struct ItemOptions {
  int64_t limit = 0, shots = 0;
  std::string shots_from = {};
  template <class Visitor>
  void visit(Visitor& v) {
    v("limit", limit, "only the first N items of each task; 0: all");
    v("shots", shots,
      "items, with their right answers, that stand before each question (few-shot): the first ones of --shots-from, "
      "not drawn at random as the harness does");
    v("shots_from", shots_from, "the file of these items, in the format of the task's own");
  }
};

/// The items of a task. Each shot is followed by an empty line; a question is not among its own shots.
/// @param data  a folder with the task's files, or the file itself.
/// @throws InputError for a missing file, naming those that would do; for a malformed row, naming its line; for a file
///         without rows; for a negative limit or number of shots, too few rows of shots, and shots of a task without
///         questions.
std::vector<TaskItem> read_items(const Task& task, const std::string& data, const ItemOptions& options);

/// The documents of texts as items of the task `perplexity`. @param documents  only the first ones; 0: all.
/// @throws InputError as TextSource, and for texts without a document; FailedError at SIGINT or SIGTERM (core/stop.h).
std::vector<TaskItem> text_items(const Task& task, TextSource& source, int64_t documents);

/// The documents of a file of WikiText, each from its heading on.
/// Source: EleutherAI/wikitext_document_level, which the harness reads.
std::vector<std::string> wikitext_pages(const std::string& text);

}  // namespace prism
