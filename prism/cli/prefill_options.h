// --prefill and its kin: what the commands share that read prompts.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "prism/attention/prefill.h"
#include "prism/cli/field_options.h"

namespace prism {

/// Names for the flags of PrefillOptions, and `others`.
FlagNames prefill_flags(FlagNames others = {});
/// Adds --prefill-set. @param sets  receives NAME=VALUE.
void add_prefill_set_option(CLI::App& app, std::vector<std::string>& sets);
/// The settings that these words make. @throws InputError as selector_settings().
Json prefill_settings(const std::string& selector, const std::vector<std::string>& sets);

/// density; where recall was measured its mean, 5th percentile and minimum, and oracle_density.
Json statistics_to_json(const HeadStatistics& heads);
/// Options, density, recall and milliseconds, over all layers and of each layer and head.
Json prefill_to_json(const PrefillOptions& options, const std::vector<LayerPrefill>& layers);
/// The same over all layers, in a line.
std::string prefill_text(const PrefillOptions& options, const std::vector<LayerPrefill>& layers);

}  // namespace prism
