// Shared by the commands that run a model: --context, --threads, --dtype, --device, and loading the model with its
// tokenizer.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "prism/checkpoint/model_folder.h"

namespace prism {

struct ComputeOptions {
  int threads = 0;
  std::string dtype = "auto", device = "cpu";
  std::string weights = "float32";  ///< as find_weight_storage() takes it
  ContextOptions context = {};
};

/// Adds --device.
void add_device_option(CLI::App& app, std::string& device);

/// Adds --weights, for commands that only read models, and makes `file` its default.
void add_weights_option(CLI::App& app, ComputeOptions& options);
/// Adds --cache-type. @param prefix  of its help.
void add_cache_type_option(CLI::App& app, std::string& type, const std::string& prefix = "");
/// The dtype that --cache-type stands for; std::nullopt: that of products.
std::optional<torch::ScalarType> find_cache_type(const std::string& type);
/// Adds --context and --rope-scaling.
void add_context_options(CLI::App& app, ContextOptions& options);
/// Adds --context, --rope-scaling, --dtype, --device and --threads.
void add_compute_options(CLI::App& app, ComputeOptions& options);

/// The number of threads that `requested` stands for (thread_limit()). @throws InputError if it is more than the cores
/// can run in reasonable time: 16 for each core, at least 64.
int check_threads(int requested);

/// Sets up the process for `requested` threads (0: all that it may use) and opens the device, so that a missing device
/// is reported before any file is read. Call it before creating tensors.
/// @return  the number of threads.
int start_compute(int requested, const std::string& device = "cpu");

/// Loads a model with the dtype of `options` onto their device. @throws as load_model() and open_device().
ModelFolder load_model(const std::string& path, const ComputeOptions& options);
/// The same for a classifier.
ClassifierFolder load_classifier(const std::string& path, const ComputeOptions& options);
/// load_model() for a model that must have a tokenizer. @throws InputError also if the folder has none.
ModelFolder load_model_with_tokenizer(const std::string& path, const ComputeOptions& options,
                                      const std::string& operation);

}  // namespace prism
