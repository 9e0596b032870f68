// prism bench model: how fast a language model reads prompts and decodes, or a classifier labels texts.
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
A language model reads prompts of random tokens (pp512: 512 tokens) and decodes one token at a time (tg128: 128 tokens;
tg128@d4096: after 4096 that are cached; tg128x32: of 32 sequences at once), as llama-bench does. A classifier labels
batches of texts of random tokens (text128x32: 32 texts of 128 tokens), as prism classify does. All tests take turns;
figures are medians. `share` is the speed as a share of this CPU's limit: for prompts and texts, of its peak for matrix
products, measured by a loop in registers; for decoding, of its memory bandwidth, by the bytes of weights, keys and
values that a token must read.

  prism bench model model.gguf --prompt-tokens 512 2048 4096 --new-tokens 128 --depth 0 4096
  prism bench model model.gguf --prompt-tokens 512 --sequences 1 8 32
  prism bench model runs/long --prompt-tokens 16384 --new-tokens 0 --prefill spectral
  prism bench model runs/news --prompt-tokens 128 512 --sequences 1 32                   # a classifier
)";

struct ModelWords {
  std::string model, cache_type = "auto";
  InferenceBench bench;
  PrefillFlags prefill;
  ComputeOptions compute;
  bool json = false;
};

void add_options(CLI::App& app, ModelWords& words) {
  InferenceBench& bench = words.bench;
  app.add_option("MODEL", words.model, kModelHelp)->required();
  app.add_option("--prompt-tokens", bench.prompt_tokens,
                 "lengths of the prompts to read, 0: none; for a classifier, of the texts, by default its context")
      ->capture_default_str();
  app.add_option("--new-tokens", bench.new_tokens, "tokens to decode; 0: none")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 20))
      ->capture_default_str();
  app.add_option("--depth", bench.depths, "tokens that are cached before decoding begins")->capture_default_str();
  app.add_option("--sequences", bench.sequences,
                 "numbers of sequences to decode at once; for a classifier, of texts in a batch, by default 32")
      ->capture_default_str();
  add_prefill_flags(app, words.prefill, /*measures_recall=*/false);
  app.add_option("--rounds", bench.rounds, "measured rounds; a warm-up round comes before them")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--seed", bench.seed, "seed of the random tokens")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 53))
      ->type_name("N")
      ->capture_default_str();
  app.add_flag("--json", words.json, "one JSON object a line");
  add_cache_type_option(app, words.cache_type);
  add_weights_option(app, words.compute);
  add_compute_options(app, words.compute);
}

std::vector<InferenceTiming> time_decoder(ModelWords& words) {
  InferenceBench& bench = words.bench;
  complete_prefill(words.prefill);
  bench.prefill = words.prefill.options;
  bench.cache_type = find_cache_type(words.cache_type);
  const auto loaded = load_model(words.model, words.compute);
  bench.costs = costs_on_this_machine(cost_shapes(bench.prefill, loaded.decoder));
  return bench_inference(loaded.decoder, bench);
}

std::vector<InferenceTiming> time_classifier(const ModelWords& words, const CLI::App& app) {
  for (const char* option :
       {"--new-tokens", "--depth", "--cache-type", "--prefill", "--prefill-set", "--prefill-chunk"})
    PRISM_CHECK(app.count(option) == 0, "bench",
                "expected a language model with {}; found a classifier, which reads texts whole and decodes nothing; "
                "leave it out or name another model.",
                option);
  const auto loaded = load_classifier(words.model, words.compute);
  TextBench bench{.rounds = words.bench.rounds, .seed = words.bench.seed, .threads = words.bench.threads};
  bench.tokens = {loaded.classifier->config().context};
  if (app.count("--prompt-tokens") > 0) bench.tokens = words.bench.prompt_tokens;
  if (app.count("--sequences") > 0) bench.texts = words.bench.sequences;
  return bench_texts(loaded.classifier, bench);
}

void print_row(const InferenceTiming& row, bool json) {
  if (json) {
    fmt::print("{}\n", to_text(fields_to_json(row)));
  } else {
    fmt::print("{:<16}{:>12.1f}{:>12.2f}{:>7.0f}%\n", row.name, row.tokens_per_s, row.ms, 100 * row.limit_share);
  }
}

}  // namespace

int run_bench_model(const Arguments& arguments) {
  ModelWords words;
  CLI::App app(std::string("Measure a model's inference.\n") + kInferenceHelp, "prism bench model");
  add_options(app, words);
  if (!parse(app, arguments)) return 0;
  words.bench.threads = start_compute(words.compute.threads, words.compute.device);
  CoreWait wait;
  const bool classifies = load_config(words.model).classes > 0;
  const auto rows = classifies ? time_classifier(words, app) : time_decoder(words);
  if (!words.json) fmt::print("{:<16}{:>12}{:>12}{:>8}\n", "test", "tokens/s", "ms", "share");
  for (const auto& row : rows) print_row(row, words.json);
  return finish_bench(wait);
}

}  // namespace prism
