// RULER: tasks over long texts that are made, of any length, for any tokenizer. Source: arXiv 2404.06654 and its code,
// NVIDIA/RULER c3f5e3b; random numbers, keys, word lists and the division of essays into sentences are prism's own.
//
//   const auto task = find_tasks({"ruler_vt"}).at(0);
//   const auto items = ruler_items(task, tokenizer, sources, /*length=*/4096, {.samples = 100});
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "prism/evaluation/ruler/prompts.h"
#include "prism/evaluation/tasks/task.h"
#include "prism/tokenizer/tokenizer.h"

namespace prism {

struct RulerOptions {
  std::vector<int64_t> lengths = {4096}, depths = {0, 25, 50, 75, 100};
  int64_t samples = 100, seed = 42;
  std::string words = {};
  template <class Visitor>
  void visit(Visitor& v) {
    v("lengths", lengths, "RULER, needle_grid: tokens of prompt and answer together; for RULER, each length is a task");
    v("depths", depths, "needle_grid: places of the needle, in percent of the text");
    v("samples", samples, "RULER, needle_grid: prompts of each task and length, and of each depth");
    v("seed", seed, "RULER, needle_grid: seed of the prompts");
    v("words", words, "RULER, ruler_cwe: a list of words, one a line, instead of words.txt or Debian's wamerican");
  }
};

/// The tasks whose prompts are made, as rows of the table of tasks. needle_grid: one number in essays, at every length
/// and depth. Group ruler: eight with needles, variable tracking, common and
/// frequent words. Group ruler_qa: two with questions about documents, which need SQuAD 2 and HotpotQA.
std::vector<Task> made_tasks();
/// Returns true for a task of RULER.
bool is_ruler_task(const Task& task);

/// Writes a prompt from a question and the beginning of its answer, e.g. by a chat template.
using PromptWriter = std::function<std::string(const std::string& question, const std::string& answer)>;
/// The answer right after the question.
std::string write_plainly(const std::string& question, const std::string& answer);

/// Prompts of one task and length. Each is the longest that fits: with one more unit of its haystack, prompt and answer
/// would have more than `length` tokens. The random numbers of prompt n depend on (seed, task, n) alone, so that the
/// same needles are hidden at every length.
/// @param on_prompt  called after each prompt.
/// @throws InputError for sources that are missing, a length that is too short for the task, and fewer than one sample;
///         FailedError at SIGINT or SIGTERM (core/stop.h).
std::vector<TaskItem> ruler_items(const Task& task, const Tokenizer& tokenizer, RulerSources& sources, int64_t length,
                                  const RulerOptions& options, const PromptWriter& write = write_plainly,
                                  const std::function<void()>& on_prompt = {});
/// The prompts of needle_grid: lengths by depths by samples. @throws InputError also for depths outside 0 to 100.
std::vector<TaskItem> grid_items(const Tokenizer& tokenizer, RulerSources& sources, const RulerOptions& options,
                                 const PromptWriter& write = write_plainly,
                                 const std::function<void()>& on_prompt = {});

}  // namespace prism
