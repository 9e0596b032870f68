// What sparse attention costs on this machine: measured once, kept in a file, so that `auto` decides alike in every
// run.
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

/// Measures with prompts of noise, 1,024 and 4,096 tokens long: the fastest of several rounds each, because other
/// work on the machine only ever adds. A second or two.
PrefillCost measure_prefill_cost(const PrefillShape& shape);

struct MachineCosts {
  PrefillCosts costs;
  std::string note;  ///< a sentence where what was measured could not be kept, else ""
};

/// For each shape, what is kept on this machine for as many threads and this instruction set; else what `measure` says
/// now, which is then kept in prefill_cost_folder(). A file that is damaged is replaced. Shapes that prism's attention
/// does not serve, so that no blocks could be left out, are left out here too.
MachineCosts machine_prefill_costs(
    const std::vector<PrefillShape>& shapes,
    const std::function<PrefillCost(const PrefillShape&)>& measure = measure_prefill_cost);

/// PRISM_CACHE, else prism in XDG_CACHE_HOME or in ~/.cache; none without a home.
std::optional<std::filesystem::path> prefill_cost_folder();

}  // namespace prism
