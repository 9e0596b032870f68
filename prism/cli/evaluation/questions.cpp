#include "prism/cli/evaluation/questions.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/core/progress.h"
#include "prism/core/text/names.h"
#include "prism/core/text/printable.h"
#include "prism/data/chat/model_template.h"
#include "prism/evaluation/ruler/ruler.h"
#include "prism/evaluation/tasks/items.h"

namespace prism {
namespace {

bool is_made(const Task& task) {
  return !task.item;
}

bool reads_words(const Task& task) {
  return task.name == "ruler_cwe";
}

/// How prompts are written. @throws InputError for a chat template that the model lacks.
PromptWriter prompt_writer(const EvalWords& words, const ModelFolder& folder) {
  if (!words.apply_chat_template) return write_plainly;
  PRISM_CHECK(folder.tokenizer->chat_template(), "eval",
              "expected a chat template in {} with --apply-chat-template; found none; leave out the option.",
              plain_line(words.model));
  return [chat = chat_template_of(*folder.tokenizer, words.model)](const std::string& question,
                                                                   const std::string& answer) {
    const Json messages = Json::array({{{"role", "user"}, {"content", question}}});
    return chat.render(messages, nullptr, /*add_generation_prompt=*/true) + answer;
  };
}

void apply_chat_template(const PromptWriter& write, std::vector<Questions>& all) {
  for (auto& [task, items] : all) {
    PRISM_CHECK(
        task.kind == TaskKind::generation, "eval",
        "expected --apply-chat-template with tasks that write answers (generate, RULER, needle_grid); found {}; leave "
        "out the option.",
        task.name);
    for (auto& item : items) item.queries.at(0).context = write(item.queries.at(0).context, "");
  }
}

/// Drops values that occur before.
void drop_repeated(std::vector<int64_t>& values) {
  std::set<int64_t> known;
  std::erase_if(values, [&](int64_t value) { return !known.insert(value).second; });
}

}  // namespace

bool asks_perplexity(const EvalWords& words) {
  return words.tasks.front() == kPerplexity;
}

bool asks_made(const EvalWords& words) {
  return std::ranges::any_of(find_tasks(words.tasks), is_made);
}

bool asks_grid(const EvalWords& words) {
  return std::ranges::any_of(find_tasks(words.tasks),
                             [](const Task& task) { return is_made(task) && !is_ruler_task(task); });
}

void complete_questions(EvalWords& words) {
  if (asks_perplexity(words)) return;
  PRISM_CHECK(words.files.empty(), "eval",
              "expected no file after the model with --task {}; found {}; name the data with --data.",
              words.tasks.front(), plain_line(words.files.front()));
  const auto tasks = find_tasks(words.tasks);
  PRISM_CHECK(!words.data.empty() || std::ranges::all_of(tasks, is_made), "eval",
              "expected the files of {}; found none; name their folder, or a file, with --data.",
              std::ranges::find_if_not(tasks, is_made)->name);
  PRISM_CHECK(words.data != "-" || tasks.size() == 1, "eval",
              "expected one task with --data -, which is read once; found {}; give one at a time.", tasks.size());
  const auto of_rows = std::ranges::count_if(tasks, [](const Task& task) { return !is_made(task) && !task.is_text(); });
  PRISM_CHECK(of_rows < 2 || !is_there(words.data) || std::filesystem::is_directory(words.data), "eval",
              "expected a folder in --data for {} tasks, each of which has a file of its own; found the file {}; name "
              "its folder, or give one task.",
              of_rows, plain_line(words.data));
  PRISM_CHECK(words.items.limit == 0 || !std::ranges::all_of(tasks, is_made), "eval",
              "expected --samples for {}, whose prompts are made; found --limit; give --samples.", words.tasks.front());
  PRISM_CHECK(words.items.shots == 0 || std::ranges::none_of(tasks, is_made), "eval",
              "expected no --shots with {}, whose prompts are made; found {}; leave the option out.",
              std::ranges::find_if(tasks, is_made)->name, words.items.shots);
  const auto& made = words.ruler;
  PRISM_CHECK(
      words.data.empty() || std::ranges::none_of(tasks, is_made) || is_there(words.data), "eval",
      "expected a folder with the sources of {}; found nothing at {}; name another with --data, or leave it out.",
      std::ranges::find_if(tasks, is_made)->name, plain_line(words.data));
  PRISM_CHECK(made.words.empty() || std::ranges::any_of(tasks, reads_words), "eval",
              "expected --words with ruler_cwe alone, which reads it; found it with {}; leave it out.",
              words.tasks.front());
  PRISM_CHECK(made.depths == RulerOptions().depths || asks_grid(words), "eval",
              "expected --depths with needle_grid alone, which hides numbers there; found it with {}; leave it out.",
              words.tasks.front());
  drop_repeated(words.ruler.lengths);
  drop_repeated(words.ruler.depths);
}

std::vector<Questions> read_questions(const EvalWords& words) {
  std::vector<Questions> all;
  for (const auto& task : find_tasks(words.tasks)) {
    if (is_made(task)) continue;
    if (asks_perplexity(words)) {
      TextSource texts(words.files, words.text);
      all.push_back({task, text_items(task, texts, words.windows.documents)});
    } else {
      all.push_back({task, read_items(task, words.data, words.items)});
    }
  }
  return all;
}

void add_made_questions(const EvalWords& words, const ModelFolder& folder, int64_t context,
                        std::vector<Questions>& all) {
  const auto write = prompt_writer(words, folder);
  if (words.apply_chat_template) apply_chat_template(write, all);
  auto tasks = find_tasks(words.tasks);
  std::erase_if(tasks, [](const Task& task) { return !is_made(task); });
  if (tasks.empty()) return;
  for (const int64_t length : words.ruler.lengths)
    PRISM_CHECK(length <= context, "eval", "expected lengths up to {}, the model's context; found {}; lower --lengths.",
                context, length);
  RulerSources sources(words.data, words.ruler.words);
  const auto grids = std::ranges::count_if(tasks, [](const Task& task) { return !is_ruler_task(task); });
  const int64_t a_length = std::ssize(tasks) - grids + grids * std::ssize(words.ruler.depths);
  Progress progress("make prompts", a_length * std::ssize(words.ruler.lengths) * words.ruler.samples, " prompts");
  const auto on_prompt = [&, made = int64_t{0}]() mutable { progress.update(++made); };
  for (const auto& task : tasks)
    if (!is_ruler_task(task))
      all.push_back({task, grid_items(*folder.tokenizer, sources, words.ruler, write, on_prompt)});
  for (const int64_t length : words.ruler.lengths)
    for (auto task : tasks) {
      if (!is_ruler_task(task)) continue;
      auto items = ruler_items(task, *folder.tokenizer, sources, length, words.ruler, write, on_prompt);
      for (auto* name : {&task.name, &task.group}) *name += fmt::format("_{}", length);
      all.push_back({std::move(task), std::move(items)});
    }
}

}  // namespace prism
