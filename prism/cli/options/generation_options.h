// The options of commands that generate text.
#pragma once

#include <CLI/CLI.hpp>

#include "prism/generation/generate.h"

namespace prism {

/// Adds an option for each field of `options` that a user may choose.
void add_generation_options(CLI::App& app, GenerateOptions& options);
/// Resolves escapes in stop strings and checks all options. Call it before loading a model, so that wrong options are
/// reported first. @throws InputError naming the option that is wrong.
void complete_generation(GenerateOptions& options);
/// The checks alone.
void check_generation(const GenerateOptions& options);

}  // namespace prism
