// What prism eval asks: the items of the tasks that a user names.
//
//   auto all = read_questions(words);                   // those with files, before a model is loaded
//   add_made_questions(words, folder, context, all);    // those whose prompts depend on its tokenizer
#pragma once

#include <cstdint>
#include <vector>

#include "prism/checkpoint/model_folder.h"
#include "prism/cli/evaluation/eval.h"
#include "prism/evaluation/tasks/task.h"

namespace prism {

/// A task with its items.
struct Questions {
  Task task;
  std::vector<TaskItem> items;
};

/// Removes lengths and depths that are named twice, and checks that options belong to a task that is asked for.
/// @throws InputError also for questions without data, or with files.
void complete_questions(EvalWords& words);
/// Returns true if perplexity is asked for, which stands alone.
bool asks_perplexity(const EvalWords& words);
/// Returns true if some task of this kind is asked for: made (RULER, needle_grid), or else with files.
bool asks_made(const EvalWords& words);
bool asks_grid(const EvalWords& words);

/// The items of tasks that have files. @throws InputError as read_items() and text_items().
std::vector<Questions> read_questions(const EvalWords& words);

/// Writes prompts by the chat template, if asked, and adds the tasks whose prompts are made. Each length of RULER is a
/// task. @param context  the most tokens of prompt and answer.
/// @throws InputError as ruler_items(), for lengths beyond the context, and for a chat template that the model lacks.
void add_made_questions(const EvalWords& words, const ModelFolder& folder, int64_t context,
                        std::vector<Questions>& all);

}  // namespace prism
