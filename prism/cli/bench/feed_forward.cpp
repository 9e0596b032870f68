// prism bench feed-forward: how fast kinds of feed-forward parts are.
#include "prism/bench/feed_forward.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "prism/cli/bench/bench.h"
#include "prism/cli/options/compute_options.h"
#include "prism/core/console.h"
#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "prism/kernels/compute_type.h"

namespace prism {
namespace {

constexpr const char* kFeedForwardHelp = R"(
Times the feed-forward part of a layer in turn for several kinds of the same width. `ratio` is the time of
forward and backward pass, divided by that of the first kind. Usually W_up and the gates are one product. Layers that
share W_up compute it in a product of its own, and so does this benchmark with --shares.

  prism bench feed-forward --kinds swiglu g2lu
  prism bench feed-forward --kinds swiglu g2lu --d-model 384 --width 256 --shares
)";

}  // namespace

int run_bench_feed_forward(const Arguments& arguments) {
  std::vector<std::string> kinds = {"swiglu", "g2lu"}, dtypes = {full_dtype("auto")};
  FeedForwardShape shape;
  int64_t rounds = 15;
  int threads = 0;
  bool json = false;
  CLI::App app(std::string("Measure feed-forward parts.\n") + kFeedForwardHelp, "prism bench feed-forward");
  app.add_option("--kinds", kinds, "kinds: swiglu, g2lu, relu, gelu")->capture_default_str();
  app.add_option("--d-model", shape.d_model, "width of the model")->capture_default_str();
  app.add_option("--width", shape.width, "hidden width")->capture_default_str();
  app.add_option("--tokens", shape.tokens, "tokens of a pass")->capture_default_str();
  app.add_flag("--shares", shape.shares, "W_up and W_down are shared with other layers");
  app.add_option("--dtypes", dtypes, "dtypes of matrix products to measure: bfloat16, float32")->capture_default_str();
  app.add_option("--rounds", rounds, "measured calls; a warm-up call comes before them")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  add_threads_option(app, threads);
  app.add_flag("--json", json, "one JSON object a line");
  if (!parse(app, arguments)) return 0;
  std::vector<torch::ScalarType> types;
  for (const auto& dtype : dtypes) types.push_back(find_compute_type(full_dtype(dtype)));
  check_feed_forward_bench(kinds, shape);
  threads = start_compute(threads);
  CoreWait wait;
  if (!json)
    fmt::print("{:<10}{:<10}{:>8}{:>8}{:>8}{:>12}{:>10}{:>8}{:>8}\n", "kind", "dtype", "tokens", "d_model", "width",
               "forward ms", "both ms", "ratio", "share");
  for (const auto type : types)
    for (const auto& row : bench_feed_forward(kinds, shape, type, rounds, threads)) {
      if (json) {
        fmt::print("{}\n", to_text(fields_to_json(row)));
      } else {
        fmt::print("{:<10}{:<10}{:>8}{:>8}{:>8}{:>12.2f}{:>10.2f}{:>8.2f}{:>7.0f}%\n", row.kind, row.dtype, row.tokens,
                   row.d_model, row.width, row.forward_ms, row.both_ms, row.ratio, 100 * row.peak_share);
      }
    }
  return finish_bench(wait);
}

}  // namespace prism
