// Reads queries, keys and values from a safetensors file, and the options that describe their rotary encoding. Used by
// prism attend and prism analyse spectrum.
#pragma once

#include <torch/types.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "prism/kernels/rotary_pairs.h"

namespace prism {

struct RotaryWords {
  std::string layout = "half_split";
  double base = 10000;
  int64_t dims = 0;
  std::vector<int64_t> sections;
  std::vector<double> steps = {1, 1, 1};
  bool is_interleaved = false;  ///< of the sections

  bool operator==(const RotaryWords&) const = default;
};

/// Adds --rotary, --rotary-base, --rotary-dims, --mrope-sections, --mrope-interleaved and --mrope-steps.
void add_rotary_options(CLI::App& app, RotaryWords& words);

/// Tensors in the layout that attend() takes.
struct AttentionTensors {
  torch::Tensor q_BTHD, k_BGSD, v_BGSE;  ///< v is undefined if the file has none
  RotaryPairs pairs;
};

/// Reads q [B, H, T, D], k [B, G, S, D], v [B, G, S, E], float32 or bfloat16, and inverse_frequencies. The last two are
/// optional.
/// @throws InputError for other shapes, types or names, values that are not finite, and options that do not fit.
AttentionTensors read_attention_tensors(const std::string& file, const RotaryWords& words,
                                        const std::string& operation);

}  // namespace prism
