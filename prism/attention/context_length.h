// Changes the context of a model that is read, and scales its rotary positions to it.
//
//   lengthen(layer.rotary, /*before=*/8192, {.context = 32768, .rope_scaling = "yarn"});
#pragma once

#include <cstdint>
#include <string>

#include "prism/attention/rotary.h"

namespace prism {

struct ContextOptions {
  int64_t context = 0;            ///< tokens; 0: the model's
  std::string rope_scaling = {};  ///< yarn or linear; empty: the model's own
};

/// The largest factors with which the papers show that a scaling works: YaRN 32 (arXiv 2309.00071, table 2), linear 16
/// (arXiv 2306.15595, table 1).
constexpr double kMostYarnFactor = 32, kMostLinearFactor = 16;

/// Scales a layer's rotary positions so that a model of context `before` reads `options.context` tokens:
/// factor = context / c, where c is the context without scaling.
/// @throws InputError for an unknown scaling, a context that needs none, positions that are scaled in another way, and
///         a factor above what the scaling is made for.
void lengthen(RotaryConfig& rotary, int64_t before, const ContextOptions& options);

}  // namespace prism
