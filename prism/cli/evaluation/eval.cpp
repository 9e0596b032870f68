// prism eval: measures how well a model predicts or labels texts, what quantised weights cost, or compares two models
// on the same ones.
#include "prism/cli/evaluation/eval.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "prism/checkpoint/model_folder.h"
#include "prism/cli/command.h"
#include "prism/cli/evaluation/questions.h"
#include "prism/cli/options/field_options.h"
#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/core/stop.h"
#include "prism/core/text/names.h"
#include "prism/core/text/printable.h"
#include "prism/evaluation/tasks/task.h"

namespace prism {
namespace {

constexpr const char* kEvalExamples = R"(
Tasks:
  perplexity       how well a language model predicts the text of FILE...: perplexity per token, word and byte, bits
                   per byte. To compare models with different tokenizers, use only the figures per word and per byte.
  divergence       how far a language model's distributions of the next token are from those of the same file in
                   float32: KL(float32 || model) in nats, for a text that is read as a prompt and one that is decoded.
  classification   how well a classifier labels the examples in the folder FILE, made by prism tokenize --label:
                   accuracy, balanced accuracy, macro-F1, loss, and the confusion matrix.
  piqa, hellaswag, arc_easy, arc_challenge, winogrande, boolq, blimp (67 parts), lambada_openai, wikitext
                   the tasks of this name of EleutherAI's lm-evaluation-harness, with its prompts, figures and errors.
                   --data names a folder with their files, e.g. piqa/valid.jsonl; several tasks may be given.
  wikitext_halves  the same file as wikitext, as one item, in windows of 512 tokens, of which the second half counts, as
                   llama.cpp's llama-perplexity measures it: perplexity per token.
  books            whole texts: each text file in the folder --data, in windows of the model's context, as PG19 is scored.
  multiple_choice  questions of your own: --data names a JSONL file with rows of query, choices (a list) and gold (the
                   number of the right choice, from 0).
  generate         prompts of your own: a JSONL file with rows of prompt, targets (a list) and stop (a list; optional).
                   Answers of up to 128 tokens: exact_match with a target, and contains, the share of targets in them.
  ruler, ruler_qa  RULER: needles, variables and words in long texts that are made for --lengths. --data names a folder
                   with paul_graham_essays.jsonl and words.txt (else Debian's wamerican); for ruler_qa with SQuAD's
                   dev-v2.0.json and HotpotQA's hotpot_dev_distractor_v1.json. Parts: ruler_niah_single_1, ruler_vt, ...
  needle_grid      one number hidden in essays, at all --lengths and --depths; prism report --evaluation draws the grid.

Perplexity: a .txt file is one document unless --separator splits it; each row of a .jsonl file is a document. Files may
be compressed as .gz, .xz or .zst; folders are read recursively; - is standard input. A document longer than --window is
cut into windows. With the default --stride they do not overlap, except for models with head budgets. A smaller --stride
gives every token more context and takes window / stride times as long. --prefill computes attention over each window as
prism generate does over a prompt: over the key blocks that a selector keeps, in chunks if asked. The output states the
window, the stride and which tokens are counted.

Divergence: the reference has its weights, products and cache in float32; --against names another file for it. The model
is loaded by --weights and --dtype, with its cache by --cache-type, and reads every window twice. As a prompt, it is
read at once or in the chunks of --prefill-chunk, and its logits are those by which perplexity is measured. Decoded, it
is read token by token through the cache, with the products of generation, up to 32 windows together. --skip leaves out
the first predictions of every window: --window 512 --stride 512 --skip 256 scores what llama-perplexity --kl-divergence
does for models whose texts no token opens, and one token more in each window. Models with head budgets are refused,
because they decide by a prompt that decoded text does not have.

Classification: texts longer than the model's context are cut off at the end. For a model with head budgets, the output
also states two means for each layer: s, the share of heads that the model asked for, and the share that was computed.
--budget-heads and --budget-gain change what MODEL's budgets decide (not those of --against), to tell which part of a
trained budget does what.

Questions (all other tasks): the choice with the largest log-likelihood is the answer (acc); acc_norm divides it by the
choice's characters, acc_bytes by its bytes. Errors are standard errors. --shots K puts K solved items before each
question. With --prefill, a selector chooses what a prompt attends to; the tokens of a written answer attend to all of
it, so that a needle may be found although the prompt was read sparsely.

Perplexity and questions: --out writes the answer to each item, a document or a question, and the figures of one model,
in the harness's layout. The same command resumes an interrupted evaluation: answers are written in batches of some
thousand tokens, in perplexity document by document. Parts of blimp or ruler that were evaluated one by one become the
group's figure when the group is asked for with the same --out.

--against evaluates a second model on the same texts, --against-prefill the same model under another kind of attention,
and both print the difference with its standard error; the task divergence takes --against as the reference instead.
Perplexity and questions: the divergence KL(second || first) of each scored token is added; written answers have none.
Perplexity: both models need the same tokenizer, and the error is over documents, because tokens of one document are not
independent; give --separator, so that the text has several documents. Questions: with a sign test (for right and wrong
answers, McNemar's exact test). Classification: the error is over examples.
--json also lists the documents' tokens and losses, or the examples' predicted classes.

  prism eval runs/novels valid.txt.xz
  prism eval runs/novels valid.txt.xz --stride 512 --json
  prism eval runs/long books.txt.xz --prefill spectral --prefill-set p=0.9 --prefill-chunk 1024 --prefill-recall 4
  prism eval runs/long books.txt.xz --separator '\n\n\n\n' --prefill spectral --against-prefill dense
  prism eval runs/progressive valid.txt.xz --separator '\n\n\n\n' --against runs/uniform
  prism eval model.Q4_1.gguf valid.txt.xz --task divergence --window 512 --stride 256 --tokens 100k
  prism eval runs/budget data/news --task classification --against runs/uniform
  prism eval model.Q4_1.gguf --task piqa blimp --data zero_shot --out results/model
  prism eval runs/progressive --task hellaswag --data zero_shot --limit 500 --against runs/uniform
  prism eval model.Q4_1.gguf --task ruler --data long_context --lengths 4096 --prefill spectral --against-prefill dense
)";

void add_prefill_options(CLI::App& app, EvalWords& words) {
  add_prefill_flags(app, words.prefill);
}

void add_made_options(CLI::App& app, EvalWords& words) {
  add_fields(app, words.ruler, {{"seed", "ruler_seed"}});
}

void add_task_options(CLI::App& app, EvalWords& words) {
  app.add_option("--data", words.data, "questions: a folder with the tasks' folders, one of these, or one file")
      ->type_name("PATH");
  add_fields(app, words.items);
  app.add_flag("--apply-chat-template", words.apply_chat_template,
               "generate, RULER, needle_grid: ask as a user of a chat, by the model's chat template");
}

void add_answer_options(CLI::App& app, EvalWords& words) {
  app.add_option("--out", words.out, "perplexity, questions: a folder for answers and figures")->type_name("FOLDER");
  app.add_option("--against-prefill", words.against_prefill,
                 "perplexity, questions: compare with the same model under this attention over prompts, e.g. dense")
      ->type_name("NAME");
  app.add_option("--against-prefill-set", words.against_sets,
                 "NAME=VALUE: change a setting of that selector; may be repeated")
      ->type_name("TEXT ...")
      ->allow_extra_args(false);
}

void add_text_options(CLI::App& app, EvalWords& words) {
  add_fields(app, words.windows);
  add_fields(app, words.text, {{"piece_bytes", ""}});
}

void add_divergence_options(CLI::App& app, EvalWords& words) {
  add_fields(app, words.divergence);
  add_cache_type_option(app, words.cache_type, "divergence: ");
}

void add_classification_options(CLI::App& app, EvalWords& words) {
  app.add_option("--split", words.split, "classification: which split to label: test, valid or train")
      ->type_name("NAME")
      ->capture_default_str();
  add_fields(app, words.labels);
}

/// How messages call the tasks of evaluation/tasks and those of evaluation/ruler.
constexpr const char *kQuestions = "tasks that ask questions",
                     *kMade = "tasks whose prompts are made (ruler, needle_grid)";

/// Options that only some tasks take.
struct TaskOptions {
  std::vector<std::string> tasks;
  std::vector<CLI::Option*> options;
};

TaskOptions options_of(std::vector<std::string> tasks, void (*add_options)(CLI::App&, EvalWords&), CLI::App& app,
                       EvalWords& words) {
  const auto before = static_cast<std::ptrdiff_t>(app.get_options().size());
  add_options(app, words);
  const auto all = app.get_options();
  return {std::move(tasks), {all.begin() + before, all.end()}};
}

void check_options(const std::vector<TaskOptions>& groups, const std::string& name) {
  for (const auto& [tasks, options] : groups) {
    if (std::find(tasks.begin(), tasks.end(), name) != tasks.end()) continue;
    for (const auto* option : options)
      PRISM_CHECK(option->count() == 0, "eval",
                  "expected options of {}; found {}, which belongs to {}; leave it out, or give another --task.", name,
                  option->get_name(), join_names(tasks));
  }
}

bool names_task(const std::string& word) {
  const auto known = task_names();
  return std::ranges::find(known, word) != known.end();
}

/// --task takes all words that follow it. After a task that reads texts, those that name no task are files.
void take_files(EvalWords& words) {
  const auto files = std::stable_partition(words.tasks.begin() + 1, words.tasks.end(), names_task);
  words.files.insert(words.files.end(), files, words.tasks.end());
  words.tasks.erase(files, words.tasks.end());
}

/// The same for the model: prism eval --task piqa MODEL.
void take_model(EvalWords& words) {
  std::vector<std::string> others;
  std::ranges::remove_copy_if(words.tasks, std::back_inserter(others), names_task);
  // A path beside a name that is misspelt, which is reported later.
  if (others.size() == 2 && is_there(others[0]) != is_there(others[1]))
    others.erase(others.begin() + (is_there(others[0]) ? 1 : 0));
  PRISM_CHECK(
      others.size() < 2, "eval",
      "expected MODEL first, before the options; found none, but {} after --task, which name no tasks; name one "
      "model.",
      plain_line(join_names(others)));
  if (words.tasks.size() < 2 || others.empty()) return;
  words.model = others.front();
  std::erase(words.tasks, words.model);
}

/// Reports names of no task.
/// @param of_texts  tasks that are not asked item by item.
void check_names(const std::vector<std::string>& tasks, const std::vector<std::string>& of_texts) {
  for (const auto& word : tasks)
    PRISM_CHECK(names_task(word) || !is_there(word), "eval",
                "expected the names of tasks after --task, such as perplexity; found the path {}; name it before the "
                "options, or after --data if it holds questions.",
                plain_line(word));
  find_tasks(tasks, of_texts);
}

}  // namespace

void print_row(std::string_view name, std::string_view value) {
  fmt::print("{:<18}{}\n", name, value);
}

void check_is_language_model(const std::string& model) {
  PRISM_CHECK(load_config(model).classes == 0, "eval",
              "expected a language model in {}; found a classifier; name another model, or give --task classification.",
              model);
}

Json difference_to_json(const std::string& model, const std::string& against, const char* task, double difference,
                        double standard_error, const Interval& interval, int64_t counted) {
  const auto known = [&](double value) { return counted < 2 ? Json() : Json(value); };
  return {{"task", task},
          {"model", model},
          {"against", against},
          {"difference", difference},
          {"standard_error", known(standard_error)},
          {"low", known(interval.low)},
          {"high", known(interval.high)}};
}

std::string signed_text(double value, int digits) {
  return std::abs(value) < 1e6 ? fmt::format("{:+.{}f}", value, digits) : fmt::format("{:+.4g}", value);
}

std::string interval_text(const Interval& interval, int digits) {
  return fmt::format("{} to {}{}", signed_text(interval.low, digits), signed_text(interval.high, digits),
                     interval.excludes(0) ? "" : ", which contains 0");
}

int run_eval(const Arguments& arguments) {
  CLI::App app(std::string("Measure perplexity, divergence or accuracy; compare two models on the same texts.\n") +
                   kEvalExamples,
               "prism eval");
  EvalWords words;
  app.add_option("MODEL", words.model, kModelHelp);
  app.add_option("FILE", words.files,
                 "text files, folders, or - for standard input; for classification, a data folder; none for questions");
  app.add_option("--against", words.against, "a second model, which MODEL is compared with")->type_name("MODEL");
  app.add_option("--task", words.tasks, "what to measure (see above); several of those that ask questions")
      ->type_name("NAME ...")
      ->capture_default_str();
  const std::vector<TaskOptions> groups = {
      options_of({kPerplexity, "divergence", kQuestions, kMade}, add_prefill_options, app, words),
      options_of({kPerplexity, "divergence"}, add_text_options, app, words),
      options_of({"divergence"}, add_divergence_options, app, words),
      options_of({"classification"}, add_classification_options, app, words),
      options_of({kPerplexity, kQuestions, kMade}, add_answer_options, app, words),
      options_of({kQuestions, kMade}, add_task_options, app, words),
      options_of({kMade}, add_made_options, app, words)};
  app.add_flag("--json", words.json,
               "print JSON instead of tables: one object per model, and one for their difference");
  add_weights_option(app, words.compute);
  add_compute_options(app, words.compute);
  if (!parse(app, arguments)) return 0;
  static const std::map<std::string, void (*)(EvalWords&)> of_texts = {{"divergence", run_divergence},
                                                                       {"classification", run_classification}};
  const auto reads_texts = [&](const std::string& name) { return name == kPerplexity || of_texts.contains(name); };
  if (reads_texts(words.tasks.front())) take_files(words);
  const bool asks = std::ranges::none_of(words.tasks, reads_texts);
  PRISM_CHECK(asks || words.tasks.size() == 1, "eval", "expected {} without other tasks; found {}; give one at a time.",
              *std::ranges::find_if(words.tasks, reads_texts), join_names(words.tasks));
  if (asks && words.model.empty()) take_model(words);
  PRISM_CHECK(!words.model.empty(), "eval", "expected MODEL; found none; name it first, before the options.");
  if (asks) check_names(words.tasks, names_of(of_texts));
  check_options(groups, !asks ? words.tasks.front() : asks_made(words) ? kMade : kQuestions);
  PRISM_CHECK(asks || !words.files.empty(), "eval", "expected files to read; found none; name them after the model.");
  start_compute(words.compute.threads, words.compute.device);
  catch_stop_signals();
  const auto found = of_texts.find(words.tasks.front());
  (found == of_texts.end() ? run_tasks : found->second)(words);
  return 0;
}

}  // namespace prism
