// The page's script. It shows the values of the point under the pointer, and hides and shows groups. The page is
// complete without it.
//
//   page += fmt::format("<script type=\"application/json\" id=\"plot-data\">{}</script>", plot_data(labels, plots));
//   page += fmt::format("<script>{}</script>", kPageScript);
#pragma once

#include <string>
#include <vector>

#include "prism/report/draw/plot.h"

namespace prism {

/// page/page.js, which the build makes into a string (cmake/embed_page.cmake): identical on every page; plot_data()
/// holds what differs. The script sets texts of runs only as textContent.
extern const char* const kPageScript;

/// "sha256-...": the hash by which the content security policy allows this script and no other; made by the build.
extern const char* const kPageScriptHash;

/// JSON without "<", ">" and "&": {"series": [[name, colour], ...], "plots": {id: [[x, y, series, text], ...]}}.
/// Contains the points that have a text, in pixels of their plot.
///
/// @param labels  of the series, any text.
std::string plot_data(const std::vector<std::string>& labels, const std::vector<Plot>& plots);

}  // namespace prism
