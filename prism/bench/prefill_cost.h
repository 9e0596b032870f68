// Calibration of sparse attention on this machine. It is measured once and kept in a file, so that `auto` makes the
// same choice in every run.
//
//   const MachineCosts machine = machine_prefill_costs({{.type = torch::kBFloat16, .head_dim = 128}});
//   const auto selector = find_selector("auto", settings, machine.costs);
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "prism/sparse/prefill_cost.h"

namespace prism {

/// Measures with prompts of noise, 1,024 and 4,096 tokens long. Takes the fastest of several rounds, because other work
/// on the machine only adds time. Takes a second or two.
PrefillCost measure_prefill_cost(const PrefillShape& shape);

struct MachineCosts {
  PrefillCosts costs;
  std::string note;  ///< a sentence for the user if the costs could not be kept, else ""
};

/// The costs of each shape: kept ones for this CPU, thread count and instruction set if there are any. Otherwise calls
/// `measure` and keeps the result in prefill_cost_folder(). A damaged file is replaced. Skips shapes that prism's flash
/// kernels do not serve, because those cannot leave out blocks.
MachineCosts machine_prefill_costs(
    const std::vector<PrefillShape>& shapes,
    const std::function<PrefillCost(const PrefillShape&)>& measure = measure_prefill_cost);

/// PRISM_CACHE, or else prism in XDG_CACHE_HOME or in ~/.cache; std::nullopt if none of these is set.
std::optional<std::filesystem::path> prefill_cost_folder();

}  // namespace prism
