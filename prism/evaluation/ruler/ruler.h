// RULER: tasks over long texts that are made, of any length, for any tokenizer. Source: arXiv 2404.06654 and its code,
// NVIDIA/RULER c3f5e3b; random numbers, keys, word lists and the division of essays into sentences are prism's own.
//
//   const auto task = find_tasks({"ruler_vt"}).at(0);
//   const auto items = ruler_items(task, tokenizer, sources, {.length = 4096, .samples = 100});
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "prism/evaluation/ruler/prompts.h"
#include "prism/evaluation/tasks/task.h"
#include "prism/tokenizer/tokenizer.h"

namespace prism {

struct RulerOptions {
  std::vector<int64_t> lengths = {4096};
  int64_t samples = 100, seed = 42;
  std::string words = {};
  template <class Visitor>
  void visit(Visitor& v) {
    v("lengths", lengths, "RULER: tokens of prompt and answer together; several lengths are several tasks");
    v("samples", samples, "RULER: prompts of each task and length");
    v("seed", seed, "RULER: seed of the prompts");
    v("words", words, "RULER, ruler_cwe: a list of words, one a line, instead of words.txt or Debian's wamerican");
  }
};

/// The tasks of RULER, as rows of the table of tasks. Group ruler: eight with needles, variable tracking, common and
/// frequent words. Group ruler_qa: two with questions about documents, which need SQuAD 2 and HotpotQA.
std::vector<Task> ruler_tasks();
bool is_ruler_task(const Task& task);

/// Prompts of one task and length. Each is the longest that fits: with one more unit of its haystack, prompt and answer
/// would have more than `length` tokens. What prompt n hides is a function of (seed, task, n)
/// alone.
/// @throws InputError for sources that are missing, a length that is too short for the task, and fewer than one sample.
std::vector<TaskItem> ruler_items(const Task& task, const Tokenizer& tokenizer, RulerSources& sources, int64_t length,
                                  const RulerOptions& options);

}  // namespace prism
