// The page's script: it shows the values of the point that one points at, and hides and shows groups. The page is whole
// without it.
//
//   page += fmt::format("<script type=\"application/json\" id=\"plot-data\">{}</script>", plot_data(labels, plots));
//   page += fmt::format("<script>{}</script>", kPageScript);
#pragma once

#include <string>
#include <vector>

#include "prism/report/plot.h"

namespace prism {

/// JavaScript, the same on every page: what differs is in plot_data().
extern const char* const kPageScript;

/// "sha256-...": what a content security policy knows the script by, so that no other runs.
extern const char* const kPageScriptHash;

/// JSON without "<", ">" and "&": {"series": [[name, colour], ...], "plots": {id: [[x, y, series, text], ...]}}, the
/// points that have a text, in pixels of their plot.
///
/// @param labels  of the series, any text.
std::string plot_data(const std::vector<std::string>& labels, const std::vector<Plot>& plots);

}  // namespace prism
