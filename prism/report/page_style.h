// The page's style sheet.
#pragma once

namespace prism {

/// Light, dark and print; phone and desktop. Plots and pictures take their colours from its variables.
extern const char* const kPageStyle;

}  // namespace prism
