#include "prism/report/draw/series.h"

#include <fmt/format.h>

#include <array>

namespace prism {
namespace {

struct Marker {
  int gnuplot_point;
  const char* path;
};

constexpr std::array kMarkers = {
    Marker{7, "M-3,0a3,3 0 1,0 6,0a3,3 0 1,0 -6,0z"},  // disc
    Marker{5, "M-2.7,-2.7h5.4v5.4h-5.4z"},             // square
    Marker{9, "M0,-3.6L3.4,2.4L-3.4,2.4z"},            // triangle
    Marker{13, "M0,-3.8L3.8,0L0,3.8L-3.8,0z"},         // diamond
    Marker{11, "M0,3.6L3.4,-2.4L-3.4,-2.4z"},          // triangle, point down
};
constexpr std::array kDashes = {"", "7,3", "2,2", "9,3,2,3"};

}  // namespace

SeriesStyle series_style(int series) {
  // One step further after each round of colours, so that no colour comes again with the same marker.
  const auto count = static_cast<size_t>(series), index = count + count / kSeriesColours;
  const Marker& marker = kMarkers[index % kMarkers.size()];
  return {series % kSeriesColours, kDashes[index % kDashes.size()], marker.gnuplot_point, marker.path};
}

std::string series_key_svg(int series) {
  const SeriesStyle style = series_style(series);
  const std::string dashes = *style.dashes ? fmt::format(" stroke-dasharray=\"{}\"", style.dashes) : "";
  return fmt::format(
      "<svg class=\"key\" viewBox=\"0 0 26 10\" width=\"26\" height=\"10\" aria-hidden=\"true\" "
      "style=\"color:var(--series-{})\"><path d=\"M1,5H25\" stroke=\"currentColor\" stroke-width=\"2\"{}/>"
      "<path d=\"{}\" transform=\"translate(13,5)\" fill=\"currentColor\"/></svg>",
      style.colour, dashes, style.marker_path);
}

}  // namespace prism
