// prism eval --task divergence: how far a model as it is stored is from the same model in float32.
#include "prism/evaluation/divergence.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "prism/checkpoint/model_folder.h"
#include "prism/cli/evaluation/eval.h"
#include "prism/core/console.h"
#include "prism/core/error.h"
#include "prism/core/progress.h"
#include "prism/core/timer.h"
#include "prism/kernels/compute_type.h"
#include "prism/models/prompt_checks.h"

namespace prism {
namespace {

const std::string& reference_name(const EvalWords& words) {
  return words.against.empty() ? words.model : words.against;
}

Decoder load_reference(const EvalWords& words, const Tokenizer& tokenizer) {
  ComputeOptions in_float32 = words.compute;
  in_float32.dtype = in_float32.weights = "float32";
  const ModelFolder reference = load_model_with_tokenizer(reference_name(words), in_float32, "eval");
  PRISM_CHECK(tokenizer.fingerprint_text() == reference.tokenizer->fingerprint_text(), "eval",
              "expected a reference with the model's tokenizer {}; found {}; name another model with --against.",
              tokenizer.fingerprint_text(), reference.tokenizer->fingerprint_text());
  return reference.decoder;
}

/// @throws InputError if the model is computed as the reference is.
void check_differs(const EvalWords& words, const Decoder& model) {
  const auto weights = model->weights();
  const bool is_frozen = std::any_of(weights.begin(), weights.end(),
                                     [](const WeightEntry& entry) { return entry.weight.packed() != nullptr; });
  PRISM_CHECK(
      is_frozen || model->compute_type() != torch::kFloat || words.cache_type != "auto" || !words.against.empty() ||
          words.prefill.options.selector != "dense",
      "eval",
      "expected weights or products in another type than the reference's float32; found float32 for both, here "
      "and with these options; name a file whose weights are quantised, or give --dtype bfloat16 or --cache-type "
      "int8.");
}

Json to_json(const DivergenceFigures& figures) {
  return {{"mean", figures.mean},       {"standard_error", figures.standard_error},
          {"median", figures.median},   {"p90", figures.p90},
          {"p99", figures.p99},         {"p99_9", figures.p999},
          {"maximum", figures.maximum}, {"same_top", figures.same_top}};
}

Json to_json(const EvalWords& words, const DivergenceResult& result, const std::string& dtype, double seconds) {
  return {{"task", "divergence"},
          {"model", words.model},
          {"reference", reference_name(words)},
          {"files", words.files},
          {"prompt", to_json(result.prompt)},
          {"decoded", to_json(result.decoded)},
          {"tokens", result.tokens},
          {"documents", result.documents},
          {"windows", result.windows},
          {"window", result.window},
          {"stride", result.stride},
          {"skip", result.skip},
          {"selector", words.prefill.options.selector},
          {"chunk", result.chunk},
          {"weights", words.compute.weights},
          {"dtype", dtype},
          {"cache_type", words.cache_type},
          {"conventions", result.conventions()},
          {"seconds", seconds}};
}

void print_table(const EvalWords& words, const DivergenceResult& result, const std::string& dtype, double seconds) {
  print_row("nats per token", fmt::format("{:>12}{:>12}", "prompt", "decoded"));
  for (const auto& [name, figure] : {std::pair{"mean", &DivergenceFigures::mean},
                                     {"standard error", &DivergenceFigures::standard_error},
                                     {"median", &DivergenceFigures::median},
                                     {"90th percentile", &DivergenceFigures::p90},
                                     {"99th percentile", &DivergenceFigures::p99},
                                     {"99.9th percentile", &DivergenceFigures::p999},
                                     {"maximum", &DivergenceFigures::maximum}})
    print_row(name, fmt::format("{:>12.6f}{:>12.6f}", result.prompt.*figure, result.decoded.*figure));
  print_row("same top token",
            fmt::format("{:>11.3f}%{:>11.3f}%", 100 * result.prompt.same_top, 100 * result.decoded.same_top));
  print_row("tokens", fmt::to_string(result.tokens));
  print_row("windows", fmt::to_string(result.windows));
  if (words.prefill.options.selector != "dense")
    print_row("attention", fmt::format("{} in prompts; dense in the reference", words.prefill.options.selector));
  print_row("reference", reference_name(words) + ", weights, products and cache in float32");
  print_row(
      "computed in",
      fmt::format("{}{}, {}, {} tokens/s", dtype, words.cache_type == "auto" ? "" : ", cache in " + words.cache_type,
                  short_duration(seconds), short_number(static_cast<double>(result.tokens) / seconds)));
  const char* name = "convention";
  for (const auto& rule : result.conventions()) print_row(std::exchange(name, ""), rule);
}

}  // namespace

void run_divergence(EvalWords& words) {
  complete_prefill(words.prefill);
  refuse_recall(words.prefill, "eval");
  check_is_language_model(words.model);
  if (!words.against.empty()) check_is_language_model(words.against);
  const ModelFolder model = load_model_with_tokenizer(words.model, words.compute, "eval");
  check_prefill(model.decoder->config(), words.prefill.options);
  check_differs(words, model.decoder);
  const Decoder reference = load_reference(words, *model.tokenizer);
  const auto costs = costs_on_this_machine(cost_shapes(words.prefill.options, model.decoder));
  Prefill prefill(words.prefill.options, costs);
  TextSource text(words.files, words.text);
  words.divergence.windows = words.windows;

  const Timer timer;
  std::optional<Progress> progress;
  const auto show = [&](const DivergenceProgress& state) {
    if (!progress) progress.emplace("divergence", state.tokens_total, " tokens");
    progress->update(state.tokens, state.mean == 0 ? "" : fmt::format("{:.6f} nats so far", state.mean));
  };
  const auto result = evaluate_divergence(reference, model.decoder, *model.tokenizer, text, words.divergence,
                                          find_cache_type(words.cache_type), show, &prefill);
  const double seconds = timer.seconds();
  progress.reset();  // clears its line
  const std::string dtype = compute_type_name(model.decoder->compute_type());
  if (words.json) {
    fmt::print("{}\n", to_text(to_json(words, result, dtype, seconds)));
  } else {
    print_table(words, result, dtype, seconds);
  }
  flush_output();
  say_notes(prefill.notes());
}

}  // namespace prism
