// --prefill and the options that go with it, shared by the commands that read prompts.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "prism/attention/prefill.h"
#include "prism/attention/prefill_meter.h"
#include "prism/models/decoder.h"

namespace prism {

/// The parsed options.
struct PrefillFlags {
  PrefillOptions options;
  PrefillMeterOptions meter;
  std::vector<std::string> sets;  ///< NAME=VALUE
};

/// The settings of a selector after NAME=VALUE words. @param option  that gave them, e.g. "--set".
/// @throws InputError as selector_settings(), with the option's name if a word is wrong.
Json settings_from_sets(const std::string& selector, const std::vector<std::string>& sets, const std::string& operation,
                        const char* option);

/// Adds --prefill, --prefill-set and --prefill-chunk. @param measures_recall  --prefill-recall, too.
void add_prefill_flags(CLI::App& app, PrefillFlags& flags, bool measures_recall = true);
/// Turns `sets` into settings and checks all options. Call it before loading a model, so that wrong options are
/// reported first. @throws InputError as selector_settings(), Prefill and PrefillMeter.
void complete_prefill(PrefillFlags& flags);

/// For commands that do not measure recall. @throws InputError if it is asked for.
void refuse_recall(const PrefillFlags& flags, const char* operation);

/// The shapes whose costs the selector needs for a prompt of this model. Empty if the model is not on the CPU.
std::vector<PrefillShape> cost_shapes(const PrefillOptions& options, Decoder decoder);
/// Calls machine_prefill_costs() and prints its note to standard error.
PrefillCosts costs_on_this_machine(const std::vector<PrefillShape>& shapes);
/// Prints each note to standard error.
void say_notes(const std::vector<std::string>& notes);

/// density and, if recall was measured, its mean, 5th percentile and minimum, and oracle_density.
Json statistics_to_json(const HeadStatistics& heads);
/// Options, density, recall and milliseconds, over all layers and of each layer and head.
Json prefill_to_json(const PrefillOptions& options, const std::vector<LayerPrefill>& layers);
/// The same over all layers, as one line of text.
std::string prefill_text(const PrefillOptions& options, const std::vector<LayerPrefill>& layers);

}  // namespace prism
