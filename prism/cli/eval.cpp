// prism eval: measure a model by a task.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "prism/checkpoint/model_folder.h"
#include "prism/cli/command.h"
#include "prism/cli/compute_options.h"
#include "prism/cli/field_options.h"
#include "prism/core/error.h"
#include "prism/core/names.h"
#include "prism/core/progress.h"
#include "prism/core/stop.h"
#include "prism/core/timer.h"
#include "prism/evaluation/perplexity.h"
#include "prism/kernels/compute_type.h"

namespace prism {
namespace {

constexpr const char* kExamples = R"(
Tasks:
  perplexity   how well the model predicts the text of FILE...: perplexity per token, word and byte, bits per byte.
               Only figures per word or byte compare models with different tokenizers.

A .txt file is one document unless --separator splits it; a row of a .jsonl file is one. Files may be packed as .gz, .xz
or .zst; folders are read recursively; - is standard input. A document longer than --window is cut into windows. With
the default --stride they stand side by side; a smaller one gives every token more context and takes longer
(window / stride times). The rules in force are printed with the figures.

  prism eval runs/novels --task perplexity valid.txt.xz
  prism eval runs/novels --task perplexity valid.txt.xz --stride 512 --json
)";

struct Words {
  std::string model, task = "perplexity";
  std::vector<std::string> files;
  PerplexityOptions perplexity;
  TextOptions text;
  ComputeOptions compute;
  bool json = false;
};

void add_options(CLI::App& app, Words& words) {
  app.add_option("MODEL", words.model, "a model folder, or a run: then its last checkpoint")->required();
  app.add_option("FILE", words.files, "files, folders, or - for standard input")->required();
  app.add_option("--task", words.task, "what to measure")->type_name("NAME")->capture_default_str();
  add_fields(app, words.perplexity);
  add_fields(app, words.text, {{"piece_bytes", ""}});
  app.add_flag("--json", words.json, "print one JSON object instead of the table");
  add_compute_options(app, words.compute);
}

void print_json(const Words& words, const PerplexityResult& result, const std::string& dtype, double seconds) {
  // A figure that does not exist (no words: NaN) or has no number (inf) is null.
  const Json json = {{"task", "perplexity"},
                     {"model", words.model},
                     {"files", words.files},
                     {"token_perplexity", result.token_perplexity()},
                     {"word_perplexity", result.word_perplexity()},
                     {"byte_perplexity", result.byte_perplexity()},
                     {"bits_per_byte", result.bits_per_byte()},
                     {"nats", result.nats},
                     {"tokens", result.tokens},
                     {"words", result.words},
                     {"bytes", result.bytes},
                     {"documents", result.documents},
                     {"windows", result.windows},
                     {"window", result.window},
                     {"stride", result.stride},
                     {"opening", result.opening},
                     {"dtype", dtype},
                     {"conventions", result.conventions()},
                     {"seconds", seconds}};
  fmt::print("{}\n", to_text(json));
}

void print_row(std::string_view name, const std::string& value) {
  fmt::print("{:<18}{}\n", name, value);
}

void print_figure(const char* name, double value) {
  if (std::isnan(value)) return print_row(name, "none");
  print_row(name, value < 1e6 ? fmt::format("{:.4f}", value) : fmt::format("{:.4e}", value));
}

void print_table(const PerplexityResult& result, const std::string& dtype, double seconds) {
  print_figure("token perplexity", result.token_perplexity());
  print_figure("word perplexity", result.word_perplexity());
  print_figure("byte perplexity", result.byte_perplexity());
  print_figure("bits per byte", result.bits_per_byte());
  print_row("tokens", fmt::to_string(result.tokens));
  print_row("words", fmt::to_string(result.words));
  print_row("bytes", fmt::to_string(result.bytes));
  print_row("documents", fmt::to_string(result.documents));
  print_row("windows", fmt::to_string(result.windows));
  print_row("computed in", fmt::format("{}, {}, {} tokens/s", dtype, short_duration(seconds),
                                       short_number(static_cast<double>(result.tokens) / seconds)));
  const char* name = "convention";
  for (const auto& rule : result.conventions()) print_row(std::exchange(name, ""), rule);
}

void run_perplexity(const Words& words, const ModelFolder& model) {
  TextSource text(words.files, words.text);
  const Timer timer;
  std::optional<Progress> progress;
  const auto show = [&](const PerplexityProgress& state) {
    if (!progress) progress.emplace("perplexity", state.tokens_total, "tokens");
    progress->update(state.tokens,
                     fmt::format("{:.2f} so far", std::exp(state.nats / static_cast<double>(state.tokens))));
  };
  const auto result = evaluate_perplexity(model.decoder, *model.tokenizer, text, words.perplexity, show);
  progress.reset();  // clears its line
  const std::string dtype = compute_type_name(model.decoder->compute_type());
  if (words.json) {
    print_json(words, result, dtype, timer.seconds());
  } else {
    print_table(result, dtype, timer.seconds());
  }
}

using Task = void (*)(const Words&, const ModelFolder&);

Task find_task(const std::string& name) {
  static const std::map<std::string, Task> table = {{"perplexity", run_perplexity}};
  return find_by_name(table, name, "eval", "task");
}

}  // namespace

int run_eval(const Arguments& arguments) {
  CLI::App app(std::string("measure a model\n") + kExamples, "prism eval");
  Words words;
  add_options(app, words);
  if (!parse(app, arguments)) return 0;
  start_compute(words.compute.threads);

  const Task task = find_task(words.task);
  const ModelFolder model = load_model_with_tokenizer(words.model, words.compute, "eval");
  catch_stop_signals();
  task(words, model);
  return 0;
}

}  // namespace prism
