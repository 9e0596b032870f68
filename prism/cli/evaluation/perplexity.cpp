// prism eval --task perplexity: measures the perplexity of a model, or of two models document by document.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "prism/checkpoint/model_folder.h"
#include "prism/cli/evaluation/eval.h"
#include "prism/core/console.h"
#include "prism/core/error.h"
#include "prism/core/progress.h"
#include "prism/core/text/names.h"
#include "prism/core/timer.h"
#include "prism/evaluation/paired.h"
#include "prism/kernels/compute_type.h"
#include "prism/models/prompt_checks.h"

namespace prism {
namespace {

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
  Json json = difference_to_json(words, "perplexity difference", paired.difference, paired.standard_error,
                                 paired.interval, paired.documents);
  json.update({{"documents", paired.documents}, {"better", paired.better}, {"by_document", std::move(differences)}});
  return json;
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
    if (!progress) progress.emplace("perplexity", state.tokens_total, " tokens");
    progress->update(state.tokens,
                     fmt::format("{:.2f} so far", std::exp(state.nats / static_cast<double>(state.tokens))));
  };
  auto result = evaluate_perplexity(model.decoder, *model.tokenizer, text, words.windows, show, &prefill);
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
  print_row("difference", fmt::format("{:+.5f} nats per token{}", paired.difference,
                                      paired.documents < 2 ? ", of one document"
                                                           : fmt::format(", standard error {:.5f} over {} documents",
                                                                         paired.standard_error, paired.documents)));
  print_row("95% interval",
            paired.documents < 2 ? "none: one document; give --separator" : interval_text(paired.interval, 5));
  print_row("better on", fmt::format("{} of {} documents", paired.better, paired.documents));
}

}  // namespace

void run_perplexity(EvalWords& words) {
  complete_prefill(words.prefill);
  check_is_language_model(words.model);
  const ModelFolder model = load_model_with_tokenizer(words.model, words.compute, "eval");
  check_prefill(model.decoder->config(), words.prefill.options);
  auto shapes = cost_shapes(words.prefill.options, model.decoder);
  if (words.against.empty()) {
    measure(words, words.model, model, costs_on_this_machine(shapes));
    return;
  }
  PRISM_CHECK(std::find(words.files.begin(), words.files.end(), "-") == words.files.end(), "eval",
              "expected files that can be read twice with --against; found - for standard input; save it to a file.");
  const ModelFolder other = load_model_with_tokenizer(words.against, words.compute, "eval");
  check_prefill(other.decoder->config(), words.prefill.options);
  PRISM_CHECK(
      model.tokenizer->fingerprint_text() == other.tokenizer->fingerprint_text(), "eval",
      "expected two models with the same tokenizer, so that tokens can be paired; found {} and {}; compare their bits "
      "per byte in two calls.",
      model.tokenizer->fingerprint_text(), other.tokenizer->fingerprint_text());
  EvalWords both = words;
  if (both.windows.window == 0)
    both.windows.window = std::min(model.decoder->config().context, other.decoder->config().context);
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

}  // namespace prism
