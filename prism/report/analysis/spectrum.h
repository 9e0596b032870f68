// Plots of the lines of `prism analyse spectrum --json`, one for each head.
//
//   page += draw_plot(energy_plot(heads, "mean over the heads of layer 3"), "gnuplot");
#pragma once

#include <string>
#include <vector>

#include "prism/core/fields.h"
#include "prism/report/draw/plot.h"

namespace prism {

/// The share of each rotary pair's length that the mean over a block keeps.
Plot gain_plot(const Json& head);

/// Root mean squares of each rotary pair, mean over the given heads of a layer: series in the order of kEnergyNames.
/// @param where  which heads these are, for the description.
Plot energy_plot(const std::vector<Json>& heads, const std::string& where);

inline const std::vector<std::string> kEnergyNames = {"queries", "queries, pooled", "keys", "keys, pooled"};

}  // namespace prism
