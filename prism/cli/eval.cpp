// prism eval: measures the perplexity of a model, or of two models document by document.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "prism/checkpoint/model_folder.h"
#include "prism/cli/command.h"
#include "prism/cli/options/compute_options.h"
#include "prism/cli/options/field_options.h"
#include "prism/cli/options/prefill_options.h"
#include "prism/core/console.h"
#include "prism/core/error.h"
#include "prism/core/progress.h"
#include "prism/core/stop.h"
#include "prism/core/text/names.h"
#include "prism/core/timer.h"
#include "prism/evaluation/paired.h"
#include "prism/evaluation/perplexity.h"
#include "prism/kernels/compute_type.h"

namespace prism {
namespace {

constexpr const char* kEvalExamples = R"(
Tasks:
  perplexity   how well the model predicts the text of FILE...: perplexity per token, word and byte, bits per byte.
               To compare models with different tokenizers, use only the figures per word and per byte.

A .txt file is one document unless --separator splits it; each row of a .jsonl file is a document. Files may be
compressed as .gz, .xz or .zst; folders are read recursively; - is standard input. A document longer than --window is
cut into windows. With the default --stride they do not overlap. A smaller --stride gives every token more context and
takes window / stride times as long. The output states the window, the stride and which tokens are counted.

--against scores a second model with the same tokenizer on the same documents. It prints the difference of the losses
with its standard error over documents, because tokens of one document are not independent. Give --separator, so that
the text has several documents. --json also lists each document's number of tokens and its loss in nats under both
models.

  prism eval runs/novels --task perplexity valid.txt.xz
  prism eval runs/novels --task perplexity valid.txt.xz --stride 512 --json
  prism eval runs/long books.txt.xz --prefill spectral --prefill-set p=0.9 --prefill-chunk 1024 --prefill-recall 4
  prism eval runs/progressive valid.txt.xz --separator '\n\n\n\n' --against runs/uniform
)";

struct EvalWords {
  std::string model, against, task = "perplexity";
  std::vector<std::string> files;
  PerplexityOptions perplexity;
  PrefillFlags prefill;
  TextOptions text;
  ComputeOptions compute;
  bool json = false;
};

void add_options(CLI::App& app, EvalWords& words) {
  app.add_option("MODEL", words.model, "a model folder, or a run folder (its last checkpoint)")->required();
  app.add_option("FILE", words.files, "text files, folders, or - for standard input")->required();
  app.add_option("--against", words.against, "a second model; its losses are subtracted document by document")
      ->type_name("MODEL");
  app.add_option("--task", words.task, "what to measure: perplexity")->type_name("NAME")->capture_default_str();
  add_fields(app, words.perplexity);
  add_prefill_flags(app, words.prefill);
  add_fields(app, words.text, {{"piece_bytes", ""}});
  app.add_flag("--json", words.json,
               "print JSON instead of tables: one object per model, and one for their difference");
  add_compute_options(app, words.compute);
}

/// Returns true if the output reports what the selector kept.
bool shows_prefill(const EvalWords& words) {
  return words.json || words.prefill.options.selector != "dense";
}

Json to_json(const EvalWords& words, const std::string& model, const PerplexityResult& result,
             const PrefillMeter& meter, const std::string& dtype, double seconds) {
  // NaN (e.g. without words) and infinity become null.
  return {{"task", "perplexity"},
          {"model", model},
          {"files", words.files},
          {"token_perplexity", result.token_perplexity()},
          {"word_perplexity", result.word_perplexity()},
          {"byte_perplexity", result.byte_perplexity()},
          {"bits_per_byte", result.bits_per_byte()},
          {"nats", result.nats},
          {"tokens", result.tokens},
          {"words", result.words},
          {"bytes", result.bytes},
          {"documents", result.documents.size()},
          {"windows", result.windows},
          {"window", result.window},
          {"stride", result.stride},
          {"opening", result.opening},
          {"prefill", prefill_to_json(words.prefill.options, meter.layers())},
          {"dtype", dtype},
          {"conventions", result.conventions()},
          {"seconds", seconds}};
}

Json to_json(const EvalWords& words, const PairedLoss& paired, const PerplexityResult& first,
             const PerplexityResult& second) {
  Json differences = Json::array();
  for (size_t i = 0; i < first.documents.size(); ++i)
    differences.push_back({{"tokens", first.documents[i].tokens},
                           {"nats", first.documents[i].nats},
                           {"nats_against", second.documents[i].nats}});
  const auto known = [&](double value) { return paired.documents < 2 ? Json() : Json(value); };
  return {{"task", "perplexity difference"},
          {"model", words.model},
          {"against", words.against},
          {"difference", paired.difference},
          {"standard_error", known(paired.standard_error)},
          {"low", known(paired.interval.low)},
          {"high", known(paired.interval.high)},
          {"documents", paired.documents},
          {"better", paired.better},
          {"by_document", std::move(differences)}};
}

void print_row(std::string_view name, const std::string& value) {
  fmt::print("{:<18}{}\n", name, value);
}

void print_figure(const char* name, double value) {
  if (std::isnan(value)) return print_row(name, "none");
  print_row(name, value < 1e6 ? fmt::format("{:.4f}", value) : fmt::format("{:.4e}", value));
}

void print_table(const EvalWords& words, const PerplexityResult& result, const PrefillMeter& meter,
                 const std::string& dtype, double seconds) {
  print_figure("token perplexity", result.token_perplexity());
  print_figure("word perplexity", result.word_perplexity());
  print_figure("byte perplexity", result.byte_perplexity());
  print_figure("bits per byte", result.bits_per_byte());
  print_row("tokens", fmt::to_string(result.tokens));
  print_row("words", fmt::to_string(result.words));
  print_row("bytes", fmt::to_string(result.bytes));
  print_row("documents", fmt::to_string(result.documents.size()));
  print_row("windows", fmt::to_string(result.windows));
  if (words.prefill.options.selector != "dense")
    print_row("attention", prefill_text(words.prefill.options, meter.layers()));
  print_row("computed in", fmt::format("{}, {}, {} tokens/s", dtype, short_duration(seconds),
                                       short_number(static_cast<double>(result.tokens) / seconds)));
  const char* name = "convention";
  for (const auto& rule : result.conventions()) print_row(std::exchange(name, ""), rule);
}

PerplexityResult measure(const EvalWords& words, const std::string& name, const ModelFolder& model,
                         const PrefillCosts& costs) {
  PrefillMeter meter(words.prefill.meter);
  Prefill prefill(words.prefill.options, costs, shows_prefill(words) ? &meter : nullptr);
  TextSource text(words.files, words.text);
  const Timer timer;
  std::optional<Progress> progress;
  const auto show = [&](const PerplexityProgress& state) {
    if (!progress) progress.emplace("perplexity", state.tokens_total, "tokens");
    progress->update(state.tokens,
                     fmt::format("{:.2f} so far", std::exp(state.nats / static_cast<double>(state.tokens))));
  };
  auto result = evaluate_perplexity(model.decoder, *model.tokenizer, text, words.perplexity, show, &prefill);
  const double seconds = timer.seconds() - all_layers(meter.layers()).measure_seconds;
  progress.reset();  // clears its line
  const std::string dtype = compute_type_name(model.decoder->compute_type());
  if (words.json) {
    fmt::print("{}\n", to_text(to_json(words, name, result, meter, dtype, seconds)));
  } else {
    if (!words.against.empty()) print_row("model", name);
    print_table(words, result, meter, dtype, seconds);
  }
  flush_output();
  say_notes(prefill.notes());
  return result;
}

void print_paired(const PairedLoss& paired) {
  const auto& [low, high] = paired.interval;
  print_row("difference", fmt::format("{:+.5f} nats per token{}", paired.difference,
                                      paired.documents < 2 ? ", of one document"
                                                           : fmt::format(", standard error {:.5f} over {} documents",
                                                                         paired.standard_error, paired.documents)));
  print_row("95% interval", paired.documents < 2
                                ? "none: one document; give --separator"
                                : fmt::format("{:+.5f} to {:+.5f}{}", low, high,
                                              paired.interval.excludes(0) ? "" : ", which contains 0"));
  print_row("better on", fmt::format("{} of {} documents", paired.better, paired.documents));
}

void run_perplexity(const EvalWords& words, const ModelFolder& model) {
  auto shapes = cost_shapes(words.prefill.options, model.decoder);
  if (words.against.empty()) {
    measure(words, words.model, model, costs_on_this_machine(shapes));
    return;
  }
  PRISM_CHECK(std::find(words.files.begin(), words.files.end(), "-") == words.files.end(), "eval",
              "expected files that can be read twice with --against; found - for standard input; save it to a file.");
  const ModelFolder other = load_model_with_tokenizer(words.against, words.compute, "eval");
  PRISM_CHECK(
      model.tokenizer->fingerprint_text() == other.tokenizer->fingerprint_text(), "eval",
      "expected two models with the same tokenizer, so that tokens can be paired; found {} and {}; compare their bits "
      "per byte in two calls.",
      model.tokenizer->fingerprint_text(), other.tokenizer->fingerprint_text());
  EvalWords both = words;
  if (both.perplexity.window == 0)
    both.perplexity.window = std::min(model.decoder->config().context, other.decoder->config().context);
  const auto shapes_of_other = cost_shapes(words.prefill.options, other.decoder);
  shapes.insert(shapes.end(), shapes_of_other.begin(), shapes_of_other.end());
  const auto costs = costs_on_this_machine(shapes);
  const auto first = measure(both, words.model, model, costs);
  if (!words.json) fmt::print("\n");
  const auto second = measure(both, words.against, other, costs);
  const auto paired = paired_loss(first.documents, second.documents);
  if (words.json) {
    fmt::print("{}\n", to_text(to_json(words, paired, first, second)));
  } else {
    fmt::print("\n");
    print_paired(paired);
  }
}

using Task = void (*)(const EvalWords&, const ModelFolder&);

Task find_task(const std::string& name) {
  static const std::map<std::string, Task> table = {{"perplexity", run_perplexity}};
  return find_by_name(table, name, "eval", "task");
}

}  // namespace

int run_eval(const Arguments& arguments) {
  CLI::App app(std::string("Measure perplexity; compare two models document by document.\n") + kEvalExamples,
               "prism eval");
  EvalWords words;
  add_options(app, words);
  if (!parse(app, arguments)) return 0;
  start_compute(words.compute.threads, words.compute.device);

  const Task task = find_task(words.task);
  complete_prefill(words.prefill);
  const ModelFolder model = load_model_with_tokenizer(words.model, words.compute, "eval");
  catch_stop_signals();
  task(words, model);
  return 0;
}

}  // namespace prism
