// How generated text and its speeds are printed.
#pragma once

#include <string>
#include <string_view>

#include "prism/cli/options/prefill_options.h"
#include "prism/generation/generate.h"

namespace prism {

/// Prints and flushes, so that text appears while it is generated. Replaces control characters on a terminal.
void print_now(std::string_view text);

/// What --json and --prompts say of a result: the texts, why it ended, and counts.
Json generation_to_json(const std::string& prompt, const Generation& result);

/// Prints to standard error what was left out of a prompt that was too long, and how often the context was full.
void print_notes(const Generation& result);
/// Prints speeds, notes and what the selector kept to standard error.
void print_speeds(const PrefillFlags& prefill, const Generation& result, const PrefillMeter& meter);

}  // namespace prism
