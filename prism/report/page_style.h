// The page's style sheet.
#pragma once

namespace prism {

/// The colours as variables, for light and dark: those of plots and pictures too.
extern const char* const kPageColours;

/// Of heat maps, on the page and in files of their own; colours twice, for programs that know no variables.
extern const char* const kHeatMapStyle;

/// All that follows kPageColours: desktop, phone and print.
extern const char* const kPageStyle;

}  // namespace prism
