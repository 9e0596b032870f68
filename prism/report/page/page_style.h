// The page's style sheet.
#pragma once

namespace prism {

/// Colours as CSS variables, for light and dark mode; also used by plots and pictures.
extern const char* const kPageColours;

/// Style of heat maps, on the page and in separate files. Colours are given twice, for programs that do not support
/// variables.
extern const char* const kHeatMapStyle;

/// All other styles, after kPageColours: desktop, phone and print.
extern const char* const kPageStyle;

}  // namespace prism
