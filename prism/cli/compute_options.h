// What the commands share that run a model: threads, dtype, and the model with its tokenizer.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "prism/checkpoint/model_folder.h"

namespace prism {

struct ComputeOptions {
  int threads = 0;
  std::string dtype = "auto";
};

/// Adds --dtype and --threads.
void add_compute_options(CLI::App& app, ComputeOptions& options);

/// Sets the process up for `requested` threads (0: all it may use) and returns their number. Before any tensor is made.
int start_compute(int requested);

/// @throws InputError as load_model, and if the folder has no tokenizer.
ModelFolder load_model_with_tokenizer(const std::string& path, const ComputeOptions& options,
                                      const std::string& operation);

}  // namespace prism
