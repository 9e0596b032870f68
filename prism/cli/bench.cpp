// prism bench: how fast attention is, against LibTorch's and against the CPU's limit.
#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

#include "prism/bench/attention.h"
#include "prism/cli/command.h"
#include "prism/cli/compute_options.h"
#include "prism/core/error.h"
#include "prism/core/names.h"

namespace prism {
namespace {

constexpr const char* kExamples = R"(
prism and its peer, LibTorch's scaled_dot_product_attention, take turns in one process; figures are medians. A ratio above
1 says how many times faster prism is. The share is that of the CPU's limit: of what a register-only loop computes, or
when decoding of what a plain loop reads from memory.

  prism bench attention --tokens 1024 4096 --head-dims 64 128 256 --dtypes bf16 f32
  prism bench attention --passes forward_backward --tokens 512 1024 --json
  prism bench attention --shapes shapes.json --rounds 15         # a list of {"batch": 2, "heads": 12, "tokens": 77, ...}
  prism bench decode --keys 8192
)";

struct Words {
  std::vector<int64_t> tokens = {1024, 4096}, head_dims = {64, 128, 256};
  std::vector<std::string> dtypes = {"bf16"}, passes = {"forward"};
  int64_t d_model = 768, batch = 1, keys = 8192, rounds = 5;
  std::string shapes;
  int threads = 0;
  bool json = false;
};

std::vector<AttentionShape> shapes_of(const Words& words) {
  std::vector<AttentionShape> shapes;
  if (!words.shapes.empty()) {
    read_fields(shapes, read_json(words.shapes), words.shapes);
    return shapes;
  }
  for (const int64_t dim : words.head_dims)
    for (const int64_t tokens : words.tokens) {
      PRISM_CHECK(dim > 0 && words.d_model % dim == 0, "bench", "expected head widths that divide {}; found {}.",
                  words.d_model, dim);
      AttentionShape shape;
      shape.batch = words.batch;
      shape.heads = shape.kv_heads = words.d_model / dim;
      shape.tokens = tokens;
      shape.head_dim = dim;
      shapes.push_back(shape);
    }
  return shapes;
}

void print_row(const AttentionTiming& row, bool json) {
  if (json) {
    fmt::print("{}\n", to_text(fields_to_json(row)));
  } else {
    fmt::print("{:<17}{:<6}{:>4} x {:>2} ({:>2}) x {:<4}{:>7}{:>7}{:>11.3f}{:>11.3f}{:>8.2f}{:>7.0f}%\n", row.pass,
               row.dtype, row.batch, row.heads, row.kv_heads, row.head_dim, row.tokens, row.keys, row.prism_ms,
               row.peer_ms, row.ratio, 100 * row.peak_share);
  }
  std::fflush(stdout);
}

int run_attention(const Arguments& arguments, bool decode) {
  Words words;
  if (decode) words.tokens = {1};
  CLI::App app(std::string(decode ? "one query over many keys" : "attention, causal") + "\n" + kExamples,
               decode ? "prism bench decode" : "prism bench attention");
  app.add_option("--head-dims", words.head_dims, "widths of a head")->capture_default_str();
  app.add_option("--d-model", words.d_model, "heads times width")->capture_default_str();
  app.add_option("--batch", words.batch, "sequences")->capture_default_str();
  app.add_option("--dtypes", words.dtypes, "bf16, f32")->capture_default_str();
  app.add_option("--rounds", words.rounds, "turns of each")->check(CLI::Range(1, 1000))->capture_default_str();
  if (decode) {
    app.add_option("--keys", words.keys, "keys of the one query")->capture_default_str();
  } else {
    app.add_option("--tokens", words.tokens, "queries, and as many keys")->capture_default_str();
    app.add_option("--passes", words.passes, "forward, forward_backward")->capture_default_str();
    app.add_option("--shapes", words.shapes,
                   "a JSON list of shapes instead, with fields batch, heads, kv_heads, tokens, "
                   "keys, head_dim and lengths (full or ragged)")
        ->type_name("FILE");
  }
  add_threads_option(app, words.threads);
  app.add_flag("--json", words.json, "one JSON object a line");
  if (!parse(app, arguments)) return 0;
  const int threads = start_compute(words.threads);
  if (!words.json)
    fmt::print("{:<17}{:<6}{:<20}{:>7}{:>7}{:>11}{:>11}{:>8}{:>8}\n", "pass", "dtype", "batch x heads x width",
               "tokens", "keys", "prism ms", "SDPA ms", "ratio", "share");
  for (const auto& dtype : words.dtypes)
    for (const auto& pass : words.passes)
      for (AttentionShape shape : shapes_of(words)) {
        const AttentionBench bench{dtype, pass, words.rounds, threads};
        if (decode) shape.keys = words.keys;
        print_row(decode ? bench_decode(shape, bench, int64_t{1} << 30) : bench_attention(shape, bench), words.json);
      }
  return 0;
}

int run_bench_attention(const Arguments& arguments) {
  return run_attention(arguments, false);
}

int run_bench_decode(const Arguments& arguments) {
  return run_attention(arguments, true);
}

}  // namespace

int run_bench(const Arguments& arguments) {
  static const std::map<std::string, int (*)(const Arguments&)> benches = {{"attention", run_bench_attention},
                                                                           {"decode", run_bench_decode}};
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h") {
    fmt::print("usage: prism bench attention|decode [options]\n{}\nExit status: 0 done, 1 failed, 2 wrong input.\n",
               kExamples);
    return arguments.empty() ? 2 : 0;
  }
  return find_by_name(benches, arguments[0], "bench", "benchmark")(Arguments(arguments.begin() + 1, arguments.end()));
}

}  // namespace prism
