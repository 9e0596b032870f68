// What the commands share that run a model: threads, dtype, and the model with its tokenizer.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "prism/checkpoint/model_folder.h"

namespace prism {

struct ComputeOptions {
  int threads = 0;
  std::string dtype = "auto", device = "cpu";
};

/// Adds --device.
void add_device_option(CLI::App& app, std::string& device);

/// Adds --dtype, --device and --threads.
void add_compute_options(CLI::App& app, ComputeOptions& options);

/// Sets the process up for `requested` threads (0: all it may use) and returns their number; opens the device, so that
/// one that is not there is refused before anything is read. Before any tensor is made.
int start_compute(int requested, const std::string& device = "cpu");

/// load_model() by the options, on their device. @throws as load_model() and open_device().
ModelFolder load_model(const std::string& path, const ComputeOptions& options);
/// @throws InputError as load_model, and if the folder has no tokenizer.
ModelFolder load_model_with_tokenizer(const std::string& path, const ComputeOptions& options,
                                      const std::string& operation);

}  // namespace prism
