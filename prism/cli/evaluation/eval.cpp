// prism eval: measures how well a model predicts or labels texts, what quantised weights cost, or compares two models
// on the same ones.
#include "prism/cli/evaluation/eval.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "prism/checkpoint/model_folder.h"
#include "prism/cli/command.h"
#include "prism/cli/options/field_options.h"
#include "prism/core/error.h"
#include "prism/core/stop.h"
#include "prism/core/text/names.h"

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
does, and one token more in each window. Models with head budgets are refused, because they decide by a prompt that
decoded text does not have.

Classification: texts longer than the model's context are cut off at the end. For a model with head budgets, the output
also states two means for each layer: s, the share of heads that the model asked for, and the share that was computed.

--against evaluates a second model on the same texts and prints the difference with its standard error; the task
divergence takes it as the reference instead. Perplexity: both models need the same tokenizer, and the error is over
documents, because tokens of one document are not independent; give --separator, so that the text has several documents.
Classification: the error is over examples.
--json also lists the documents' tokens and losses, or the examples' predicted classes.

  prism eval runs/novels valid.txt.xz
  prism eval runs/novels valid.txt.xz --stride 512 --json
  prism eval runs/long books.txt.xz --prefill spectral --prefill-set p=0.9 --prefill-chunk 1024 --prefill-recall 4
  prism eval runs/progressive valid.txt.xz --separator '\n\n\n\n' --against runs/uniform
  prism eval model.Q4_1.gguf valid.txt.xz --task divergence --window 512 --stride 256 --tokens 100k
  prism eval runs/budget data/news --task classification --against runs/uniform
)";

void add_text_options(CLI::App& app, EvalWords& words) {
  add_fields(app, words.windows);
  add_prefill_flags(app, words.prefill);
  add_fields(app, words.text, {{"piece_bytes", ""}});
}

void add_divergence_options(CLI::App& app, EvalWords& words) {
  add_fields(app, words.divergence);
  add_cache_type_option(app, words.cache_type);
}

void add_classification_options(CLI::App& app, EvalWords& words) {
  app.add_option("--split", words.split, "classification: which split to label: test, valid or train")
      ->type_name("NAME")
      ->capture_default_str();
  add_fields(app, words.labels);
}

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
                  "expected options of the task {}; found {}, which belongs to {}; leave it out, or give --task {}.",
                  name, option->get_name(), fmt::join(tasks, " and "), tasks.front());
  }
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

Json difference_to_json(const EvalWords& words, const char* task, double difference, double standard_error,
                        const Interval& interval, int64_t counted) {
  const auto known = [&](double value) { return counted < 2 ? Json() : Json(value); };
  return {{"task", task},
          {"model", words.model},
          {"against", words.against},
          {"difference", difference},
          {"standard_error", known(standard_error)},
          {"low", known(interval.low)},
          {"high", known(interval.high)}};
}

std::string interval_text(const Interval& interval, int digits) {
  return fmt::format("{:+.{}f} to {:+.{}f}{}", interval.low, digits, interval.high, digits,
                     interval.excludes(0) ? "" : ", which contains 0");
}

int run_eval(const Arguments& arguments) {
  CLI::App app(std::string("Measure perplexity, divergence or accuracy; compare two models on the same texts.\n") +
                   kEvalExamples,
               "prism eval");
  EvalWords words;
  app.add_option("MODEL", words.model, kModelHelp)->required();
  app.add_option("FILE", words.files, "text files, folders, or - for standard input; for classification, a data folder")
      ->required();
  app.add_option("--against", words.against, "a second model, which MODEL is compared with")->type_name("MODEL");
  app.add_option("--task", words.task, "what to measure: perplexity, divergence or classification")
      ->type_name("NAME")
      ->capture_default_str();
  const std::vector<TaskOptions> groups = {options_of({"perplexity", "divergence"}, add_text_options, app, words),
                                           options_of({"divergence"}, add_divergence_options, app, words),
                                           options_of({"classification"}, add_classification_options, app, words)};
  app.add_flag("--json", words.json,
               "print JSON instead of tables: one object per model, and one for their difference");
  add_weights_option(app, words.compute);
  add_compute_options(app, words.compute);
  if (!parse(app, arguments)) return 0;
  static const std::map<std::string, void (*)(EvalWords&)> tasks = {
      {"perplexity", run_perplexity}, {"divergence", run_divergence}, {"classification", run_classification}};
  const auto task = find_by_name(tasks, words.task, "eval", "task");
  check_options(groups, words.task);
  start_compute(words.compute.threads, words.compute.device);
  catch_stop_signals();
  task(words);
  return 0;
}

}  // namespace prism
