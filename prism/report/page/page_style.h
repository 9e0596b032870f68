// The page's style sheets, which the build makes into strings (cmake/embed_page.cmake).
//
//   page += fmt::format("<style>{}{}{}</style>", kPageColours, kHeatMapStyle, kPageStyle);
#pragma once

namespace prism {

/// draw/colours.css: colours as CSS variables, for light and dark mode; also used by plots and pictures.
///
/// The series' colours are those of Okabe and Ito, and of Tol, darkened for light mode and lightened for dark mode to a
/// contrast of at least 3. Lines also differ in dashes and markers.
extern const char* const kPageColours;

/// draw/heat_map.css: style of heat maps, on the page and in separate files. Colours are given twice, for programs that
/// do not support variables.
extern const char* const kHeatMapStyle;

/// page/page.css: all other styles, after kPageColours: desktop, phone and print.
extern const char* const kPageStyle;

}  // namespace prism
