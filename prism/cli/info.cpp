// prism info: lists what a recipe or model costs, layer by layer.
#include <algorithm>
#include <filesystem>
#include <string>

#include "prism/attention/layer_list.h"
#include "prism/bench/measure.h"
#include "prism/checkpoint/model_folder.h"
#include "prism/cli/command.h"
#include "prism/cli/options/compute_options.h"
#include "prism/core/machine.h"
#include "prism/core/progress.h"
#include "prism/core/text/counted.h"
#include "prism/kernels/compute_type.h"
#include "prism/kernels/peak.h"
#include "prism/kernels/simd/isa.h"
#include "prism/models/cost.h"
#include "prism/report/draw/number_text.h"
#include "prism/training/objective/vocabulary.h"

namespace prism {
namespace {

/// Reads the config of a recipe file, a model folder or a run.
ModelConfig config_of(const std::string& path, int64_t vocab_size) {
  if (std::filesystem::is_directory(path) || is_model_file(path)) {
    PRISM_CHECK(vocab_size == 0, "info", "expected --vocab-size with a recipe only; found the model {}; leave it out.",
                path);
    return load_config(path);
  }
  const auto recipe = load_recipe(path, {});
  auto config = recipe.model;
  if (vocab_size > 0) config.vocab_size = vocab_size;
  if (config.vocab_size == 0) config.vocab_size = vocab_size_of_data(recipe).value_or(0);
  PRISM_CHECK(config.vocab_size != 0, "info",
              "expected a vocab_size in {}, or its data in data.folder; found neither; give --vocab-size N.", path);
  complete(config);
  return config;
}

Json to_json(const ModelConfig& config, const ModelCost& cost) {
  Json layers = Json::array();
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const auto& layer = config.layers[i];
    layers.push_back({{"heads", layer.heads},
                      {"kv_heads", layer.kv_heads},
                      {"head_dim", layer.head_dim},
                      {"ffn_width", layer.ffn.width},
                      {"budget", layer.budget.kind},
                      {"mirror_of", layer.mirror_of},
                      {"parameters", cost.layers[i].parameters},
                      {"flops_per_token", cost.layers[i].flops_per_token},
                      {"kv_bytes_per_token", cost.layers[i].kv_bytes_per_token}});
  }
  const auto beyond = schedule_cost(config);
  return {{"parameters", cost.parameters},
          {"flops_per_token", cost.flops_per_token},
          {"kv_bytes_per_token", cost.kv_bytes_per_token},
          {"schedule", format_head_schedule(heads_of(config))},
          {"beyond_uniform",
           {{"parameters", beyond.parameters},
            {"flops_per_token", beyond.flops_per_token},
            {"kv_bytes_per_token", beyond.kv_bytes_per_token}}},
          {"classes", config.classes},
          {"skip", config.skip},
          {"d_model", config.d_model},
          {"context", config.context},
          {"vocab_size", config.vocab_size},
          {"layers", layers}};
}

void print_table(const ModelConfig& config, const ModelCost& cost) {
  fmt::print("heads x layers {}, d_model {}, context {}, vocabulary {}{}\n\n", format_head_schedule(heads_of(config)),
             config.d_model, config.context, config.vocab_size,
             config.classes > 0 ? fmt::format(", {} classes", config.classes)
             : config.tied      ? ", tied head"
                                : "");
  fmt::print("{:>9} {:>6} {:>9} {:>6} {:>6} {:>13} {:>14} {:>13}\n", "layer", "heads", "kv_heads", "width", "ffn",
             "parameters", "FLOPs/token", "KV B/token");
  const auto row = [](const std::string& name, const std::string& geometry, int64_t parameters, int64_t flops,
                      int64_t kv_bytes) {
    fmt::print("{:>9} {:>30} {:>13} {:>14} {:>13}\n", name, geometry, parameters, flops, kv_bytes);
  };
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const auto& layer = config.layers[i];
    row(layer.mirror_of < 0 ? std::to_string(i) : fmt::format("{} of {}", i, layer.mirror_of),
        fmt::format("{:>6} {:>9} {:>6} {:>6}", layer.heads, layer.kv_heads, layer.head_dim, layer.ffn.width),
        cost.layers[i].parameters, cost.layers[i].flops_per_token, cost.layers[i].kv_bytes_per_token);
  }
  for (const auto& part : cost.outside)
    row(part.name, part.parameters == 0 ? "shared" : "", part.parameters, part.flops_per_token, 0);
  row("total", "", cost.parameters, cost.flops_per_token, cost.kv_bytes_per_token);
  fmt::print(
      "\n{:.1f}M parameters ({:.2f} MiB in float32). FLOPs: forward pass, per token of a full context with {} "
      "attention; training takes three times as many. KV: in bfloat16.\n",
      static_cast<double>(cost.parameters) / 1e6, static_cast<double>(cost.parameters) / 262144, config.attention);
  if (!is_uniform(config.layers))
    fmt::print("Compared with {} heads in all {} layers: {}.\n", base_heads(config.layers).heads, config.layers.size(),
               describe(schedule_cost(config)));
  const auto user = std::find_if(config.layers.begin(), config.layers.end(),
                                 [](const LayerConfig& layer) { return layer.mirror_of >= 0; });
  if (user != config.layers.end())
    fmt::print(
        "\"{} of {}\": the layer uses W_up and W_down of layer {}; parameters are counted once, FLOPs at each use.\n",
        user - config.layers.begin(), user->mirror_of, user->mirror_of);
  if (config.skip > 0)
    fmt::print(
        "Training adds a second head, which predicts {} ahead and has {} parameters; no other command uses it.\n",
        counted(config.skip, "token"), grouped(config.d_model * config.vocab_size));
  if (const auto count = layers_with_budgets(config); count > 0)
    fmt::print("Head budgets in {} of {} layers: FLOPs and KV are those of all heads; {}.\n", count,
               config.layers.size(),
               config.classes > 0 ? "prism analyse budgets measures what a model keeps"
                                  : "prism report shows the share of heads in training");
  for (const auto& warning : schedule_warnings(config)) fmt::print("note: {}\n", warning);
}

/// Prints what prism finds on this machine, and the machine's measured limits.
void print_machine(int requested, bool json) {
  const auto limit = thread_limit(requested);
  start_compute(requested);
  const auto half = measure_peak(limit.threads, true), single = measure_peak(limit.threads, false);
  const double bandwidth = read_bandwidth(limit.threads) * 1e-9;
  const std::string isa = isa_name(current_isa()), dtype = compute_type_name(find_compute_type("auto"));
  if (json) {
    fmt::print("{}\n", to_text({{"cpu", cpu_name()},
                                {"isa", isa},
                                {"dtype", dtype},
                                {"threads", limit.threads},
                                {"threads_bound_by", limit.reason},
                                {"memory_bytes", total_memory_bytes()},
                                {"bfloat16_gflops", half.gflops},
                                {"bfloat16_instruction", half.instruction},
                                {"float32_gflops", single.gflops},
                                {"float32_instruction", single.instruction},
                                {"read_gb_per_s", bandwidth}}));
    return;
  }
  fmt::print("processor        {}\n", cpu_name());
  fmt::print("kernels for      {}{}\n", isa, is_amx_refused() ? " (Linux does not let this process use AMX)" : "");
  fmt::print("--dtype auto     {}\n", dtype);
  fmt::print("threads          {}, bound by {}\n", limit.threads, limit.reason);
  fmt::print("memory           {}B\n", short_number(static_cast<double>(total_memory_bytes())));
  fmt::print("bfloat16 limit   {:.0f} GFLOP/s ({})\n", half.gflops, half.instruction);
  fmt::print("float32 limit    {:.0f} GFLOP/s ({})\n", single.gflops, single.instruction);
  fmt::print("memory reads     {:.1f} GB/s\n", bandwidth);
}

}  // namespace

int run_info(const Arguments& arguments) {
  std::string path;
  int64_t vocab_size = 0;
  int threads = 0;
  bool json = false, machine = false;
  ContextOptions context;
  CLI::App app(
      "List heads, widths, parameters, FLOPs and cache size of a model layer by layer, or the limits of this machine.",
      "prism info");
  app.add_option("MODEL", path,
                 "a recipe (configs/*.json), a model folder, a run folder, a .gguf file or a .bin file of llama2.c");
  app.add_flag(
      "--machine", machine,
      "show this machine's instruction set (PRISM_ISA in the environment selects another one), the dtype "
      "of products that suits it, its threads and what limits their number, and its measured peak of matrix products");
  add_threads_option(app, threads, "threads for the measurements of --machine");
  app.get_option("--threads")->needs(app.get_option("--machine"));
  app.add_option("--vocab-size", vocab_size,
                 "vocabulary size, for recipes that take it from data that are missing here")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 24));
  add_context_options(app, context);
  app.add_flag("--json", json, "print one JSON object: parameters, flops_per_token, layers, ...");
  if (!parse(app, arguments)) return 0;
  PRISM_CHECK(machine != !path.empty(), "info", "expected a MODEL or --machine; found {}; see prism info --help.",
              machine ? "both" : "neither");
  if (machine) {
    print_machine(threads, json);
    return 0;
  }
  auto config = config_of(path, vocab_size);
  set_context(config, context);
  const auto cost = model_cost(config);
  if (json) {
    fmt::print("{}\n", to_text(to_json(config, cost)));
  } else {
    print_table(config, cost);
  }
  return 0;
}

}  // namespace prism
