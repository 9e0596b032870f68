// Queries, keys and values out of a safetensors file, and how its heads turn: what the commands share that read them.
#pragma once

#include <torch/types.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "prism/sparse/rotary_pairs.h"

namespace prism {

struct RotaryWords {
  std::string layout = "half_split";
  double base = 10000;
  int64_t dims = 0;
  std::vector<int64_t> sections;
  std::vector<double> steps = {1, 1, 1};
  bool is_interleaved = false;  ///< the sections

  bool operator==(const RotaryWords&) const = default;
};

/// Adds --rotary, --rotary-base, --rotary-dims, --mrope-sections, --mrope-interleaved and --mrope-steps.
void add_rotary_options(CLI::App& app, RotaryWords& words);

/// As attend() takes them.
struct AttentionTensors {
  torch::Tensor q_BTHD, k_BGSD, v_BGSE;  ///< values are undefined where the file has none
  RotaryPairs pairs;
};

/// The file's q [B, H, T, D], k [B, G, S, D], v [B, G, S, E], float32 or bfloat16, and inverse_frequencies, if it has
/// them.
/// @throws InputError for other shapes, types or names, queries or keys that are not finite, and words that do not fit.
AttentionTensors read_attention_tensors(const std::string& file, const RotaryWords& words,
                                        const std::string& operation);

}  // namespace prism
