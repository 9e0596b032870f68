#include "prism/cli/options/compute_options.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <map>

#include "prism/cli/command.h"
#include "prism/core/console.h"
#include "prism/core/error.h"
#include "prism/core/machine.h"
#include "prism/core/process.h"
#include "prism/core/text/counted.h"
#include "prism/core/text/field_names.h"
#include "prism/kernels/compute_type.h"
#include "prism/kernels/simd/isa.h"
#include "prism/layers/packed_weight.h"
#include "prism/models/device.h"

namespace prism {
namespace {

/// More threads per core spend most of their time waiting for each other: 1,024 threads on two cores generate no token
/// in 20 seconds.
constexpr int kMostPerCore = 16, kLeastLimit = 64;

torch::ScalarType type_of(const ComputeOptions& options, const torch::Device& device) {
  current_isa();  // reports a wrong PRISM_ISA by that name
  return naming_field("--dtype", [&] { return find_compute_type(options.dtype, device); });
}

LoadOptions load_options(const ComputeOptions& options, const torch::Device& device) {
  const auto weights = naming_field("--weights", [&] { return find_weight_storage(options.weights); });
  const auto type = type_of(options, device);
  PRISM_CHECK(
      weights != WeightStorage::bfloat16 || !device.is_cpu() || type == PackedWeight::prompt_type(), "model",
      "--weights: expected file or float32 with --dtype {} on this machine, where products read no other weights; "
      "found bfloat16; leave out one of the options.",
      compute_type_name(type));
  return {type, device.is_cpu() ? weights : WeightStorage::float32, options.context};
}

void say_converted(const std::map<std::string, int64_t>& converted) {
  for (const auto& [type, count] : converted)
    tell("note: {} of {} {} computed in bfloat16\n", counted(count, "tensor"), type, count == 1 ? "is" : "are");
}

}  // namespace

void add_weights_option(CLI::App& app, ComputeOptions& options) {
  options.weights = "file";
  app.add_option("--weights", options.weights,
                 "how weights are kept in memory on the CPU: file (as they are stored), bfloat16, or float32 (slower)")
      ->type_name("TYPE")
      ->capture_default_str();
}

void add_cache_type_option(CLI::App& app, std::string& type, const std::string& prefix) {
  app.add_option("--cache-type", type,
                 prefix +
                     "how keys and values are kept: auto (in the dtype of products), or int8 with a scale for each "
                     "head and position, which takes half the memory of bfloat16 and is faster after long texts")
      ->check(CLI::IsMember({"auto", "int8"}))
      ->type_name("TYPE")
      ->capture_default_str();
}

std::optional<torch::ScalarType> find_cache_type(const std::string& type) {
  return type == "int8" ? std::optional(torch::kChar) : std::nullopt;
}

void add_context_options(CLI::App& app, ContextOptions& options) {
  auto* context = app.add_option("--context", options.context,
                                 "tokens of the model's context, instead of those that it was made for");
  context->check(CLI::Range(int64_t{1}, int64_t{1} << 24))->type_name("N");
  app.add_option(
         "--rope-scaling", options.rope_scaling,
         "scales rotary positions to a longer --context: yarn (to 32 times the model's) or linear (to 16 times)")
      ->check(CLI::IsMember({"yarn", "linear"}))
      ->needs(context)
      ->type_name("KIND");
}

void add_compute_options(CLI::App& app, ComputeOptions& options) {
  add_context_options(app, options.context);
  app.add_option("--dtype", options.dtype,
                 "dtype of matrix products: bfloat16, float32 or auto (bfloat16 where it is fast)")
      ->type_name("TYPE")
      ->capture_default_str();
  add_device_option(app, options.device);
  add_threads_option(app, options.threads);
}

void add_device_option(CLI::App& app, std::string& device) {
  app.add_option("--device", device, "device: cpu, cuda, or cuda:N (GPU N, counted from 0)")
      ->type_name("NAME")
      ->capture_default_str();
}

int check_threads(int requested) {
  const int threads = thread_limit(requested).threads, cores = core_limit().threads;
  const int most = std::max(kLeastLimit, kMostPerCore * cores);
  PRISM_CHECK(
      threads <= most, "threads",
      "expected at most {} threads, because this process may use {} cores; found {}; give fewer with --threads.", most,
      cores, threads);
  return threads;
}

int start_compute(int requested, const std::string& device) {
  open_device(device);
  const int threads = check_threads(requested);
  const auto cores = core_limit();
  if (threads > cores.threads)
    tell("note: {} threads share {} cores ({}), which is often slower than one thread per core\n", threads,
         cores.threads, cores.reason);
  set_up_process();
  at::set_num_threads(threads);
  return threads;
}

ModelFolder load_model(const std::string& path, const ComputeOptions& options) {
  const auto device = open_device(options.device);
  ModelFolder model = load_model(std::filesystem::path(path), load_options(options, device));
  say_converted(model.converted);
  move_weights(model.decoder->weights(), device);
  return model;
}

ClassifierFolder load_classifier(const std::string& path, const ComputeOptions& options) {
  const auto device = open_device(options.device);
  ClassifierFolder model = load_classifier(std::filesystem::path(path), load_options(options, device));
  say_converted(model.converted);
  move_weights(model.classifier->weights(), device);
  return model;
}

ModelFolder load_model_with_tokenizer(const std::string& path, const ComputeOptions& options,
                                      const std::string& operation) {
  ModelFolder model = load_model(path, options);
  PRISM_CHECK(
      model.tokenizer.has_value(), operation,
      "expected a tokenizer.json in {}; found none; copy the tokenizer.json that the model was trained with there.",
      model.folder.string());
  return model;
}

}  // namespace prism
