// --prefill and its kin: what the commands share that read prompts.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "prism/attention/prefill.h"
#include "prism/attention/prefill_meter.h"
#include "prism/models/decoder.h"

namespace prism {

/// What the flags say.
struct PrefillFlags {
  PrefillOptions options;
  PrefillMeterOptions meter;
  std::vector<std::string> sets;  ///< NAME=VALUE
};

/// Adds --prefill and its kin.
void add_prefill_flags(CLI::App& app, PrefillFlags& flags);
/// Makes settings of the words, before a model is loaded. @throws InputError as selector_settings(), Prefill and
/// PrefillMeter.
void complete_prefill(PrefillFlags& flags);

/// The shapes whose costs the selector needs to read a prompt with this model; none where the model is not on the CPU.
std::vector<PrefillShape> cost_shapes(const PrefillOptions& options, Decoder decoder);
/// As machine_prefill_costs(), whose note goes to standard error.
PrefillCosts costs_on_this_machine(const std::vector<PrefillShape>& shapes);
/// Says each on standard error.
void say_notes(const std::vector<std::string>& notes);

/// density; where recall was measured its mean, 5th percentile and minimum, and oracle_density.
Json statistics_to_json(const HeadStatistics& heads);
/// Options, density, recall and milliseconds, over all layers and of each layer and head.
Json prefill_to_json(const PrefillOptions& options, const std::vector<LayerPrefill>& layers);
/// The same over all layers, in a line.
std::string prefill_text(const PrefillOptions& options, const std::vector<LayerPrefill>& layers);

}  // namespace prism
