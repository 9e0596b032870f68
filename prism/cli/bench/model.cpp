// prism bench model: how fast a model reads prompts and decodes.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "prism/bench/inference.h"
#include "prism/cli/bench/bench.h"
#include "prism/cli/options/compute_options.h"
#include "prism/cli/options/prefill_options.h"
#include "prism/core/error.h"
#include "prism/core/fields.h"

namespace prism {
namespace {

constexpr const char* kInferenceHelp = R"(
Reads prompts of random tokens (pp512: 512 tokens) and decodes one token at a time (tg128: 128 tokens; tg128@d4096:
after 4096 that are cached; tg128x32: of 32 sequences at once), as llama-bench does. All tests take turns; figures are
medians. `share` is the speed as a share of this CPU's limit: for prompts, of its peak for matrix products, measured by
a loop in registers; for decoding, of its memory bandwidth, by the bytes of weights, keys and values that a token must
read.

  prism bench model model.gguf --prompt-tokens 512 2048 4096 --new-tokens 128 --depth 0 4096
  prism bench model model.gguf --prompt-tokens 512 --sequences 1 8 32
  prism bench model runs/long --prompt-tokens 16384 --new-tokens 0 --prefill spectral
)";

void print_row(const InferenceTiming& row, bool json) {
  if (json) {
    fmt::print("{}\n", to_text(fields_to_json(row)));
  } else {
    fmt::print("{:<16}{:>12.1f}{:>12.2f}{:>7.0f}%\n", row.name, row.tokens_per_s, row.ms, 100 * row.limit_share);
  }
}

}  // namespace

int run_bench_model(const Arguments& arguments) {
  std::string model;
  InferenceBench bench;
  PrefillFlags prefill;
  ComputeOptions compute;
  std::string cache_type = "auto";
  bool json = false;
  CLI::App app(std::string("Measure a model's inference.\n") + kInferenceHelp, "prism bench model");
  app.add_option("MODEL", model, kModelHelp)->required();
  app.add_option("--prompt-tokens", bench.prompt_tokens, "lengths of the prompts to read")->capture_default_str();
  app.add_option("--new-tokens", bench.new_tokens, "tokens to decode; 0: none")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 20))
      ->capture_default_str();
  app.add_option("--depth", bench.depths, "tokens that are cached before decoding begins")->capture_default_str();
  app.add_option("--sequences", bench.sequences, "numbers of sequences to decode at once")->capture_default_str();
  add_prefill_flags(app, prefill);
  app.add_option("--rounds", bench.rounds, "measured rounds; a warm-up round comes before them")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--seed", bench.seed, "seed of the random tokens")->capture_default_str();
  app.add_flag("--json", json, "one JSON object a line");
  add_cache_type_option(app, cache_type);
  add_weights_option(app, compute);
  add_compute_options(app, compute);
  if (!parse(app, arguments)) return 0;
  bench.threads = start_compute(compute.threads, compute.device);
  complete_prefill(prefill);
  bench.prefill = prefill.options;
  bench.cache_type = find_cache_type(cache_type);
  refuse_recall(prefill, "bench");
  const auto loaded = load_model(model, compute);
  bench.costs = costs_on_this_machine(cost_shapes(bench.prefill, loaded.decoder));
  CoreWait wait;
  const auto rows = bench_inference(loaded.decoder, bench);
  if (!json) fmt::print("{:<16}{:>12}{:>12}{:>8}\n", "test", "tokens/s", "ms", "share");
  for (const auto& row : rows) print_row(row, json);
  return finish_bench(wait);
}

}  // namespace prism
