// The sections of the report's page that compare runs. A section without content is empty.
//
//   page += loss_section(comparison, writer) + schedule_section(comparison);
#pragma once

#include <string>

#include "prism/report/compare/compare.h"
#include "prism/report/page/parts.h"

namespace prism {

/// The table of results, folded if it is long, and remarks on the comparison.
std::string results_section(const Comparison& comparison);

/// Loss and differences over tokens. These are figures 1 to 4, which captions refer to by number.
std::string loss_section(const Comparison& comparison, FigureWriter& writer);

/// Loss against rate, and the cost to reach the baseline's loss.
std::string cost_section(const Comparison& comparison, FigureWriter& writer);

/// Loss on whole texts.
std::string text_section(const Comparison& comparison);

/// Scores of classifiers on the test split; empty if no run has any.
std::string test_section(const Comparison& comparison);

/// Warnings, entropy, residual stream and updates.
std::string diagnostics_section(const Comparison& comparison, FigureWriter& writer);

/// Attention distance of each layer.
std::string distance_section(const Comparison& comparison, FigureWriter& writer);

/// A picture for each distinct schedule, with the labels of all groups that have it.
std::string schedule_section(const Comparison& comparison);

/// The fields in which the recipes differ.
std::string recipe_section(const Comparison& comparison);

}  // namespace prism
