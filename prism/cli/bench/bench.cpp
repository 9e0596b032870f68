// prism bench: measures attention, prompts and training steps against LibTorch and against the CPU's limit.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "prism/bench/attention.h"
#include "prism/bench/prefill.h"
#include "prism/bench/training.h"
#include "prism/cli/bench/bench.h"
#include "prism/cli/command.h"
#include "prism/cli/options/compute_options.h"
#include "prism/cli/options/prefill_options.h"
#include "prism/core/console.h"
#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/core/machine.h"
#include "prism/core/text/field_names.h"
#include "prism/core/text/names.h"
#include "prism/kernels/compute_type.h"
#include "prism/kernels/simd/isa.h"
#include "prism/report/draw/gnuplot.h"
#include "prism/report/draw/plot_file.h"

namespace prism {
namespace {

constexpr const char* kHowToRead = R"(
prism and its peer take turns in one process; figures are medians. The peer is LibTorch's scaled_dot_product_attention,
or, for training, the same model on LibTorch's operations. A ratio above 1 says how many times faster prism is. `share`
is prism's speed as a share of this CPU's limit: its arithmetic peak, measured by a loop in registers, or, for decoding,
its memory bandwidth, measured by a plain loop over the same memory.
Shapes that prism's own kernels do not support are marked with the backend that computes them.
PRISM_ISA=portable, avx2, avx512, avx512-vnni, avx512-bf16 or amx-bf16 in the environment selects the kernels of another
instruction set.
)";

constexpr const char* kAttentionExamples = R"(
  prism bench attention --tokens 1024 4096 --head-dims 64 128 256 --dtypes bfloat16 float32
  prism bench attention --passes forward_backward --tokens 512 1024 --json
  prism bench attention --shapes shapes.json --rounds 15         # a list of {"batch": 2, "heads": 12, "tokens": 77, ...}
  prism bench attention --shapes benchmarks/attention_grid.json --rounds 15
)";
constexpr const char* kDecodeExamples = R"(
  prism bench decode --keys 8192
  prism bench decode --keys 4096 32768 --tokens 1 4 --head-dims 128 --kv-heads 1
)";
constexpr const char* kPrefillHelp = R"(
Each selector chooses the key blocks of a prompt, and prism computes attention over them. The time of both steps
together is compared with that of prism's dense attention and of LibTorch's, measured in turn. Recall is the share of
the exact attention that is in the kept blocks.
)";
constexpr const char* kPrefillExamples = R"(
  prism bench prefill --tokens 8192 32768 --selector spectral xattention flash_prefill auto
  prism bench prefill --selector random:share=0.1 random:share=0.25 random:share=0.5 dense
  prism bench prefill --tokens 131072 --mix benchmarks/mixes/structured.json --selector spectral:p=0.9 oracle
)";
constexpr const char* kTrainingExamples = R"(
  prism bench training small --by-operation                      # against the same model on LibTorch's operations
  prism bench training small-prism --peer small                  # one schedule against another
  prism bench training configs/head_budgets/paper_budget.json --peer configs/head_budgets/paper.json
)";

struct AttentionWords {
  std::vector<int64_t> tokens = {1024, 4096}, keys = {0}, head_dims = {64, 128, 256};
  std::vector<std::string> dtypes = {"bfloat16"}, passes = {"forward"};
  int64_t d_model = 768, kv_heads = 0, batch = 1, rounds = 5;
  std::string shapes;
  int threads = 0;
  bool json = false;
};

std::vector<AttentionShape> shapes_of(const AttentionWords& words) {
  std::vector<AttentionShape> shapes;
  if (!words.shapes.empty()) {
    read_fields(shapes, read_json(words.shapes), words.shapes);
    PRISM_CHECK(!shapes.empty(), "bench", "expected a list of shapes in {}; found an empty one; add a shape.",
                words.shapes);
    return shapes;
  }
  for (const int64_t dim : words.head_dims)
    for (const int64_t tokens : words.tokens)
      for (const int64_t keys : words.keys) {
        PRISM_CHECK(dim > 0 && words.d_model % dim == 0, "bench",
                    "expected head widths that divide {}; found {}; choose another or change --d-model.", words.d_model,
                    dim);
        AttentionShape shape;
        shape.batch = words.batch;
        shape.heads = words.d_model / dim;
        shape.kv_heads = words.kv_heads;
        shape.tokens = tokens;
        shape.keys = keys;
        shape.head_dim = dim;
        shapes.push_back(shape);
      }
  return shapes;
}

void print_row(const AttentionTiming& row, bool json) {
  if (json) {
    fmt::print("{}\n", to_text(fields_to_json(row)));
  } else {
    fmt::print("{:<17}{:<10}{:>4} x {:>2} ({:>2}) x {:<4}{:>7}{:>7}  {:<8}{:>11.3f}{:>11.3f}{:>8.2f}{:>7.0f}%{}\n",
               row.pass, row.dtype, row.batch, row.heads, row.kv_heads, row.head_dim, row.tokens, row.keys, row.lengths,
               row.prism_ms, row.peer_ms, row.ratio, 100 * row.peak_share,
               row.backend == "flash" ? "" : "  by the backend " + row.backend);
  }
  flush_output();
}

void add_attention_options(CLI::App& app, AttentionWords& words, bool decode) {
  app.add_option("--head-dims", words.head_dims, "head widths")->capture_default_str();
  app.add_option("--d-model", words.d_model, "model width: heads times head width")->capture_default_str();
  app.add_option("--kv-heads", words.kv_heads,
                 "key/value heads, a divisor of the query heads; 0: as many as query heads")
      ->capture_default_str();
  app.add_option("--batch", words.batch, "number of sequences")->capture_default_str();
  app.add_option("--tokens", words.tokens, decode ? "queries per sequence, at its end" : "queries per sequence")
      ->capture_default_str();
  app.add_option("--keys", words.keys, "keys per sequence, at least as many as tokens; 0: as many as tokens")
      ->capture_default_str();
  app.add_option(
         "--shapes", words.shapes,
         "JSON file with a list of shapes, instead of the options above; fields: batch, heads, kv_heads, tokens, keys, "
         "head_dim and lengths (full or ragged)")
      ->type_name("FILE")
      ->excludes("--tokens", "--keys", "--head-dims", "--d-model", "--kv-heads", "--batch");
  if (!decode)
    app.add_option("--passes", words.passes, "passes to measure")
        ->check(CLI::IsMember({"forward", "forward_backward"}))
        ->capture_default_str();
  app.add_option("--dtypes", words.dtypes, "dtypes to measure: bfloat16, float32")->capture_default_str();
  app.add_option("--rounds", words.rounds, "measurements of prism and of the peer")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  add_threads_option(app, words.threads);
  app.add_flag("--json", words.json, "one JSON object a line");
}

int run_attention(const Arguments& arguments, bool decode) {
  AttentionWords words;
  if (decode) {
    words.tokens = {1};
    words.keys = {8192};
    words.passes = {"decode"};
  }
  CLI::App app(std::string(decode ? "Measure decoding: one or a few queries over many keys in memory."
                                  : "Measure causal attention.") +
                   "\n" + kHowToRead + (decode ? kDecodeExamples : kAttentionExamples),
               decode ? "prism bench decode" : "prism bench attention");
  add_attention_options(app, words, decode);
  if (!parse(app, arguments)) return 0;
  const int threads = start_compute(words.threads);
  CoreWait wait;
  current_isa();  // reports a wrong PRISM_ISA before anything is printed
  const auto shapes = shapes_of(words);
  for (auto& dtype : words.dtypes) dtype = full_dtype(dtype);
  std::vector<std::pair<AttentionShape, AttentionBench>> rows;
  for (const auto& dtype : words.dtypes)
    for (const auto& pass : words.passes)
      for (const AttentionShape& shape : shapes) {
        const AttentionBench bench{dtype, pass, words.rounds, threads};
        rows.emplace_back(check_attention_bench(shape, bench), bench);
      }
  if (!words.json)
    fmt::print("{:<17}{:<10}{:<20}{:>7}{:>7}  {:<8}{:>11}{:>11}{:>8}{:>8}\n", "pass", "dtype", "batch x heads x width",
               "tokens", "keys", "lengths", "prism ms", "SDPA ms", "ratio", "share");
  flush_output();
  for (const auto& [shape, bench] : rows) print_row(bench_attention(shape, bench), words.json);
  return finish_bench(wait);
}

struct PrefillWords {
  std::vector<int64_t> tokens = {8192};
  std::vector<std::string> selectors = {"spectral", "random:share=0.25"};
  std::string mix, plot;
  int64_t heads = 8;
  PrefillBench bench;
  int threads = 0;
  bool is_untimed = false, json = false;
};

/// @param method  as given on the command line.
void print_row(const PrefillTiming& row, const std::string& method, bool json) {
  const auto if_measured = [](double value) { return value > 0 ? fmt::format("{:.2f}", value) : ""; };
  if (json) {
    fmt::print("{}\n", to_text(fields_to_json(row)));
  } else {
    fmt::print("{:<26} {:>8}{:>9.3f}{:>9}{:>11}{:>11}{:>11}{:>11}{:>9}{:>9} KiB\n", method, row.tokens, row.density,
               row.recall > 0 ? fmt::format("{:.4f}", row.recall) : "", if_measured(row.select_ms),
               if_measured(row.attend_ms), if_measured(row.dense_ms), if_measured(row.sdpa_ms),
               if_measured(row.speedup), row.extra_bytes >> 10);
  }
  flush_output();
}

/// Draws the speed-up over dense attention by prompt length, one line per method.
std::string speedup_figure(const std::vector<std::string>& methods, const std::vector<PrefillTiming>& rows) {
  Plot plot{.id = "prefill",
            .description = "Time of dense attention divided by the time to choose and attend, by tokens of the prompt",
            .x = {.label = "tokens of the prompt, thousands", .low = 0, .high = 0, .unit = 1000},
            .y = {.label = "times as fast as dense", .low = 0, .high = 1}};
  for (size_t m = 0; m < methods.size(); ++m) {
    PlotSeries line{.style = PlotStyle::kPoints, .series = static_cast<int>(m), .points = {}};
    for (size_t i = m; i < rows.size(); i += methods.size()) {
      const auto tokens = static_cast<double>(rows[i].tokens);
      line.points.push_back({.x = tokens, .y = rows[i].speedup});
      plot.x.high = std::max(plot.x.high, 1.05 * tokens);
      plot.y.high = std::max(plot.y.high, 1.1 * rows[i].speedup);
    }
    plot.series.push_back(std::move(line));
  }
  return plot_file(plot, methods, "gnuplot");
}

std::string mix_help() {
  std::string text = "Fields of a mix [defaults], a JSON object as in benchmarks/mixes:\n";
  for (const auto& row : describe_fields<SyntheticMix>())
    text += fmt::format("  {:<28} {} [{}]\n", row.path, row.help, row.default_value);
  return text;
}

void add_prefill_options(CLI::App& app, PrefillWords& words) {
  SyntheticMix& mix = words.bench.mix;
  app.add_option("--tokens", words.tokens, "prompt lengths")->capture_default_str();
  app.add_option("--selector", words.selectors,
                 "selectors to measure: NAME or NAME:SETTING=VALUE,...; see prism attend --help")
      ->capture_default_str();
  auto* file = app.add_option("--mix", words.mix,
                              "JSON file that describes the synthetic heads: which keys their queries attend to; "
                              "default: noise, random queries and keys, whose attention is nearly even")
                   ->type_name("FILE");
  app.add_option("--heads", words.heads, "without --mix: query heads")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str()
      ->excludes(file);
  app.add_option("--kv-heads", mix.kv_heads, "without --mix: key/value heads, a divisor of --heads")
      ->capture_default_str()
      ->excludes(file);
  app.add_option("--head-dim", mix.head_dim, "without --mix: head width, a multiple of 16")
      ->capture_default_str()
      ->excludes(file);
  app.add_option("--dtype", words.bench.dtype, "dtype: bfloat16 or float32")->capture_default_str();
  auto* rounds = app.add_option("--rounds", words.bench.rounds,
                                "measurements of each method; 0: 15, but 3 for prompts of 32768 tokens or more")
                     ->check(CLI::Range(0, 1000))
                     ->capture_default_str();
  auto* sdpa = app.add_option("--sdpa-tokens", words.bench.sdpa_tokens,
                              "measure LibTorch's attention for prompts of up to this many tokens")
                   ->check(CLI::Range(int64_t{0}, int64_t{1} << 24))
                   ->capture_default_str();
  app.add_option("--recall-rows", words.bench.recall_rows,
                 "blocks of queries per head on which recall is measured; 0: do not measure recall")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  auto* plot = app.add_option("--plot", words.plot, "draw the speed-ups into this file")->type_name("OUT.svg");
  app.add_flag("--untimed", words.is_untimed, "measure density and recall only, no times")
      ->excludes(rounds)
      ->excludes(sdpa)
      ->excludes(plot);
  app.footer(mix_help());
  add_threads_option(app, words.threads);
  app.add_flag("--json", words.json, "one JSON object a line");
}

int run_bench_prefill(const Arguments& arguments) {
  PrefillWords words;
  SyntheticMix& mix = words.bench.mix;
  mix.kv_heads = 2;
  CLI::App app(std::string("Measure attention over a prompt: dense, sparse, and LibTorch's.\n") + kPrefillHelp +
                   kPrefillExamples,
               "prism bench prefill");
  add_prefill_options(app, words);
  if (!parse(app, arguments)) return 0;
  start_compute(words.threads);
  CoreWait wait;
  current_isa();
  if (words.mix.empty()) {
    mix.heads.resize(static_cast<size_t>(words.heads));
  } else {
    mix = fields_from_json<SyntheticMix>(read_json(words.mix), words.mix);
    words.bench.mix_name = std::filesystem::path(words.mix).stem().string();
  }
  check_outputs("bench", {words.mix}, {words.plot});
  if (!words.plot.empty()) check_gnuplot("gnuplot");
  words.bench.dtype = full_dtype(words.bench.dtype, "--dtype");
  words.bench.is_timed = !words.is_untimed;
  for (const auto& text : words.selectors)
    words.bench.methods.push_back(naming_field("--selector", [&] { return parse_prefill_method(text); }));
  for (const int64_t tokens : words.tokens) {
    words.bench.tokens = tokens;
    check_prefill_bench(words.bench);
  }
  words.bench.costs = costs_on_this_machine(cost_shapes(words.bench));
  if (!words.json)
    fmt::print("{:<26} {:>8}{:>9}{:>9}{:>11}{:>11}{:>11}{:>11}{:>9}{:>13}\n", "selector", "tokens", "density", "recall",
               "select ms", "attend ms", "dense ms", "SDPA ms", "speed-up", "memory");
  flush_output();
  std::vector<PrefillTiming> rows;
  for (const int64_t tokens : words.tokens) {
    words.bench.tokens = tokens;
    for (auto& row : bench_prefill(words.bench)) {
      print_row(row, words.selectors[rows.size() % words.selectors.size()], words.json);
      rows.push_back(std::move(row));
    }
  }
  if (!words.plot.empty()) write_file(words.plot, speedup_figure(words.selectors, rows));
  return words.is_untimed ? 0 : finish_bench(wait);
}

struct TrainingWords {
  std::vector<std::string> cases = {"tiny", "small"}, dtypes;
  std::string peer = "libtorch";
  TrainingBench bench;
  int threads = 0;
  bool by_operation = false, json = false;
};

/// The width of a column of names.
size_t width_of(const std::vector<std::string>& names) {
  size_t width = 14;
  for (const auto& name : names) width = std::max(width, name.size() + 2);
  return width;
}

void print_row(const TrainingTiming& row, const TrainingWords& words) {
  if (words.json) {
    fmt::print("{}\n", to_text(fields_to_json(row)));
  } else {
    const bool has_peer = row.peer_ms > 0;
    fmt::print("{:<{}}{:<10}{:>9.1f}M{:>5} x {:<6}{:>11.1f}  {:<{}}{:>11}{:>7}{:>10.0f}{:>7.0f}%{:>8} MiB\n", row.name,
               width_of(words.cases), row.dtype, static_cast<double>(row.parameters) * 1e-6, row.batch, row.tokens,
               row.prism_ms, row.peer, width_of({words.peer}), has_peer ? fmt::format("{:.1f}", row.peer_ms) : "-",
               has_peer ? fmt::format("{:.2f}", row.ratio) : "-", row.tokens_per_s, 100 * row.peak_share,
               row.peak_memory_bytes >> 20);
  }
  flush_output();
}

void print_operations(const TrainingCase& measured, const TrainingBench& bench, bool json) {
  const auto operations = profile_training(measured, bench);
  double total = 0;
  for (const auto& time : operations) total += time.ms;
  if (!json) fmt::print("\n{:<44}{:>8}{:>11}{:>8}\n", measured.name + ", a step", "calls", "ms", "share");
  for (const auto& time : operations) {
    if (json) {
      fmt::print("{}\n", to_text({{"bench", "operation"},
                                  {"case", measured.name},
                                  {"operation", time.operation},
                                  {"calls", time.calls},
                                  {"ms", time.ms},
                                  {"share", time.ms / total}}));
    } else if (time.ms >= 1e-3 * total) {
      fmt::print("{:<44}{:>8}{:>11.2f}{:>7.1f}%\n", time.operation, time.calls, time.ms, 100 * time.ms / total);
    }
  }
}

int run_bench_training(const Arguments& arguments) {
  TrainingWords words;
  words.dtypes = {full_dtype("auto")};
  CLI::App app(std::string("Measure training steps.\n") + kHowToRead + kTrainingExamples, "prism bench training");
  app.add_option("CASE", words.cases,
                 "cases: tiny (6 layers of width 256), small (12 layers of width 768), small-prism (the same with 3 to "
                 "12 heads), 357m-2layers (2 layers of width 1024), or a recipe file")
      ->capture_default_str();
  app.add_option("--peer", words.peer,
                 "what to compare with: libtorch (the same model on LibTorch's operations), another case (the ratio is "
                 "then that of tokens per second), or none")
      ->capture_default_str();
  app.add_option("--steps", words.bench.steps, "measured steps; two warm-up steps come before them")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--dtypes", words.dtypes, "dtypes of matrix products to measure: bfloat16, float32")
      ->capture_default_str();
  app.add_flag("--by-operation", words.by_operation, "also show how the time of a step divides between operations");
  add_threads_option(app, words.threads);
  app.add_flag("--json", words.json, "one JSON object a line");
  if (!parse(app, arguments)) return 0;
  words.bench.threads = start_compute(words.threads);
  CoreWait wait;
  std::vector<TrainingCase> cases;
  for (const auto& name : words.cases) cases.push_back(find_training_case(name));
  words.bench.peer = find_training_peer(words.peer);
  words.peer = words.bench.peer.name;
  for (size_t i = 0; i < cases.size(); ++i) words.cases[i] = cases[i].name;
  for (auto& dtype : words.dtypes) dtype = full_dtype(dtype);
  if (!words.json)
    fmt::print("{:<{}}{:<10}{:>10}{:>14}{:>11}  {:<{}}{:>11}{:>7}{:>10}{:>8}{:>12}\n", "case", width_of(words.cases),
               "dtype", "parameters", "rows x tokens", "prism ms", "peer", width_of({words.peer}), "peer ms", "ratio",
               "tokens/s", "share", "memory");
  flush_output();
  for (const auto& measured : cases)
    for (const auto& dtype : words.dtypes) {
      words.bench.dtype = dtype;
      print_row(bench_training(measured, words.bench), words);
      if (words.by_operation) print_operations(measured, words.bench, words.json);
    }
  return finish_bench(wait);
}

int run_bench_attention(const Arguments& arguments) {
  return run_attention(arguments, false);
}

int run_bench_decode(const Arguments& arguments) {
  return run_attention(arguments, true);
}

}  // namespace

int finish_bench(CoreWait& wait) {
  flush_output();
  if (const auto share = wait.share().value_or(0); share > CoreWait::kBusy)
    tell("note: {}; measure again on an idle machine\n", busy_text(share));
  return 0;
}

std::string full_dtype(const std::string& name, const char* option) {
  return compute_type_name(naming_field(option, [&] { return find_compute_type(name); }));
}

int run_bench(const Arguments& arguments) {
  static const std::map<std::string, int (*)(const Arguments&)> benches = {
      {"attention", run_bench_attention},       {"budgets", run_bench_budgets}, {"decode", run_bench_decode},
      {"feed-forward", run_bench_feed_forward}, {"model", run_bench_model},     {"prefill", run_bench_prefill},
      {"training", run_bench_training}};
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h") {
    fmt::print(
        "Usage: prism bench KIND [options]\n\nMeasures how fast prism is on this machine, compared with LibTorch; "
        "budgets, feed-forward and model measure prism alone.\n\n"
        "  attention     attention of whole sequences, forward and backward\n"
        "  budgets       what an encoder's head budgets save\n"
        "  decode        attention of new tokens over a KV cache\n"
        "  feed-forward  feed-forward parts of several kinds\n"
        "  model         a model that reads prompts and decodes, or labels texts\n"
        "  prefill       block-sparse attention of a prompt, by selector\n"
        "  training      training steps of a model\n{}{}{}{}{}\n`prism bench attention --help` "
        "explains the options of a benchmark.\nExit status: 0 done, 1 failed, 2 wrong input.\n",
        kHowToRead, kAttentionExamples, kDecodeExamples + 1, kPrefillExamples + 1, kTrainingExamples + 1);
    return arguments.empty() ? 2 : 0;
  }
  return find_by_name(benches, arguments[0], "bench", "benchmark")(Arguments(arguments.begin() + 1, arguments.end()));
}

}  // namespace prism
