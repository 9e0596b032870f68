// Training speed of prism on the cases of peers/train_gpt.py, one case a process, so that runs of two programs can
// alternate (scripts/check_peers.sh training).
//
//   bench_training --case small --steps 8 --threads 2
//
// Prints one JSON line: case, params, tokens_per_s (median over the steps after the first two), first_step_s,
// peak_rss_mb, peak_share (of what a register-only loop reaches).
#include <ATen/Functions.h>
#include <ATen/Parallel.h>

#include <CLI/CLI.hpp>

#include "prism/core/fields.h"
#include "prism/core/machine.h"
#include "prism/core/statistics.h"
#include "prism/core/timer.h"
#include "prism/kernels/compute_type.h"
#include "prism/kernels/peak.h"
#include "prism/models/cost.h"
#include "prism/models/decoder.h"
#include "prism/training/adamw.h"

namespace prism {
namespace {

struct Case {
  int64_t vocab_size, d_model;
  std::string schedule;
  int64_t context, ffn_width, rows;
};

const std::map<std::string, Case>& cases() {
  static const std::map<std::string, Case> table = {
      {"tiny", {8192, 256, "4x6", 256, 688, 16}},
      {"small", {50304, 768, "12x12", 1024, 2048, 2}},
      {"small-prism", {50304, 768, "3x2,6x2,8x2,12x6", 1024, 2048, 2}},
      {"357m-2layers", {32000, 1024, "16x2", 1024, 2730, 4}},
  };
  return table;
}

ModelConfig config_of(const Case& c) {
  ModelConfig config;
  config.vocab_size = c.vocab_size;
  config.d_model = c.d_model;
  config.context = c.context;
  config.schedule = c.schedule;
  config.ffn_width = c.ffn_width;
  expand_shorthand(config);
  complete(config);
  return config;
}

Json measure(const std::string& name, int64_t steps, int threads, const std::string& dtype) {
  const auto& c = find_by_name(cases(), name, "bench_training", "case");
  const auto config = config_of(c);
  Decoder decoder(config);
  decoder->initialise(0);
  decoder->set_compute_type(find_compute_type(dtype));
  AdamW optimizer(decoder->named_parameters(), {});
  torch::manual_seed(0);
  const auto tokens = torch::randint(0, c.vocab_size, {c.rows, c.context}, torch::kLong);
  const auto labels = torch::randint(0, c.vocab_size, {c.rows, c.context}, torch::kLong);
  std::vector<double> seconds;
  for (int64_t i = 0; i < steps; ++i) {
    const Timer timer;
    decoder->loss(decoder(tokens, ForwardContext{}), labels).backward();
    optimizer.step(3e-4, optimizer.gradient_norm());
    seconds.push_back(timer.seconds());
  }
  const double first = seconds.front();
  seconds.erase(seconds.begin(), seconds.begin() + 2);
  const double tokens_per_s = static_cast<double>(c.rows * c.context) / median(seconds);
  const auto cost = model_cost(config);
  const auto peak = measure_peak(threads, decoder->compute_type() == torch::kBFloat16);
  return {{"case", name},
          {"dtype", compute_type_name(decoder->compute_type())},
          {"params", cost.parameters},
          {"tokens_per_s", tokens_per_s},
          {"first_step_s", first},
          {"peak_rss_mb", peak_memory_bytes() >> 20},
          {"peak_share", tokens_per_s * 3 * static_cast<double>(cost.flops_per_token) / (peak.gflops * 1e9)}};
}

}  // namespace
}  // namespace prism

int main(int count, char** words) {
  std::string name = "tiny", dtype = "auto";
  int64_t steps = 8;
  int threads = 0;
  CLI::App app("Training speed of one case, as JSON.", "bench_training");
  app.add_option("--case", name, "tiny, small, small-prism or 357m-2layers");
  app.add_option("--steps", steps, "at least 3")->check(CLI::Range(3, 100000));
  app.add_option("--threads", threads, "[all the process may use]");
  app.add_option("--dtype", dtype, "auto, bfloat16 or float32");
  CLI11_PARSE(app, count, words);
  const int used = prism::thread_limit(threads).threads;
  prism::set_up_process();
  at::set_num_threads(used);
  try {
    fmt::print("{}\n", prism::measure(name, steps, used, dtype).dump());
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  return 0;
}
