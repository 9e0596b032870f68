#include "prism/report/draw/heat_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "prism/core/error.h"
#include "prism/core/text/printable.h"
#include "prism/report/draw/escape.h"
#include "prism/report/draw/number_text.h"
#include "prism/report/draw/plot_file.h"
#include "prism/report/page/page_style.h"

namespace prism {
namespace {

// In pixels. A letter's width is that of wide letters, since fonts cannot be measured here.
constexpr double kMapLetter = 7.2, kSmallCell = 15, kLargeCell = 40, kScaleHeight = 46, kScaleWords = 40,
                 kMapMargin = 10, kHeading = 20;
constexpr size_t kMostLetters = 16;
/// Grids with more columns have small cells and vertical column labels.
constexpr size_t kFewColumns = 16;

std::string short_name(const std::string& name) {
  return short_line(name, kMostLetters);
}

double widest(const std::vector<std::string>& names) {
  size_t letters = 0;
  for (const auto& name : names) letters = std::max(letters, display_width(short_name(name)));
  return kMapLetter * static_cast<double>(letters) + 8;
}

/// Positions of all parts.
struct Layout {
  bool upright;
  double cell, left, top, width, height;

  explicit Layout(const HeatMap& map)
      : upright(map.columns.size() > kFewColumns || widest(map.columns) > kLargeCell),
        cell(map.columns.size() > kFewColumns ? kSmallCell : kLargeCell),
        left(kMapMargin + std::max({widest(map.rows), widest({map.row_label}), kScaleWords})),
        top(kHeading + kMapMargin + (upright ? widest(map.columns) : 16)),
        width(std::max(left + cell * static_cast<double>(map.columns.size()) + kMapMargin, left + 240)),
        height(top + row_height() * static_cast<double>(map.rows.size()) + kScaleHeight) {}

  double row_height() const { return std::min(cell, 24.0); }
  double x(size_t column) const { return left + cell * static_cast<double>(column); }
  double y(size_t row) const { return top + row_height() * static_cast<double>(row); }
};

double shade_of(const HeatMap& map, double value) {
  if (map.high <= map.low) return 0;
  return std::clamp((value - map.low) / (map.high - map.low), 0.0, 1.0);
}

/// Draws one path per shade, which takes a tenth of the space of separate rectangles.
std::string shades_svg(const HeatMap& map, const Layout& at) {
  constexpr int kMapShades = 20;
  std::vector<std::string> paths(kMapShades + 1);
  for (size_t r = 0; r < map.rows.size(); ++r)
    for (size_t c = 0; c < map.columns.size(); ++c) {
      const double value = map.values[r * map.columns.size() + c];
      if (std::isfinite(value))
        paths[static_cast<size_t>(std::lround(kMapShades * shade_of(map, value)))] += fmt::format(
            "M{:.0f} {:.0f}h{:.0f}v{:.0f}h-{:.0f}z", at.x(c), at.y(r), at.cell - 1, at.row_height() - 1, at.cell - 1);
    }
  std::string svg;
  for (int shade = 0; shade <= kMapShades; ++shade) {
    const auto& path = paths[static_cast<size_t>(shade)];
    if (path.empty()) continue;
    // The palest shade is the background alone, which would not be visible below the other shades.
    svg += shade == 0 ? fmt::format("<path class=\"ground\" d=\"{}\"/>\n", path)
                      : fmt::format("<path class=\"cell\" fill-opacity=\"{:.2f}\" d=\"{}\"/>\n",
                                    1.0 * shade / kMapShades, path);
  }
  return svg;
}

std::string cells_svg(const HeatMap& map, const Layout& at) {
  constexpr size_t kMostPointedAt = 1024;
  if (map.values.size() > kMostPointedAt) return shades_svg(map, at);
  std::string svg;
  for (size_t r = 0; r < map.rows.size(); ++r)
    for (size_t c = 0; c < map.columns.size(); ++c) {
      const double value = map.values[r * map.columns.size() + c];
      if (!std::isfinite(value)) continue;
      const std::string words =
          fmt::format("{}, {}: {:.{}f}", plain_line(map.rows[r]), plain_line(map.columns[c]), value, map.decimals);
      const std::string place = fmt::format("x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"", at.x(c),
                                            at.y(r), at.cell - 1, at.row_height() - 1);
      svg += fmt::format(
          "<g><title>{}</title><rect class=\"ground\" {}/>"
          "<rect class=\"cell\" {} fill-opacity=\"{:.3f}\"/></g>\n",
          escape_html(words), place, place, shade_of(map, value));
    }
  return svg;
}

std::string names_svg(const HeatMap& map, const Layout& at) {
  std::string svg;
  for (size_t r = 0; r < map.rows.size(); ++r)
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", at.left - 6,
                       at.y(r) + at.row_height() / 2 + 4, escape_html(short_name(map.rows[r])));
  for (size_t c = 0; c < map.columns.size(); ++c) {
    const double x = at.x(c) + at.cell / 2;
    const std::string name = escape_html(short_name(map.columns[c]));
    svg += at.upright
               ? fmt::format("<text transform=\"translate({:.1f},{:.1f}) rotate(-90)\">{}</text>\n", x + 4, at.top - 6,
                             name)
               : fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", x, at.top - 6, name);
  }
  svg += fmt::format("<text class=\"label\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", at.left - 6,
                     kHeading - 6, escape_html(map.row_label));
  return svg + fmt::format("<text class=\"label\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", at.left, kHeading - 6,
                           escape_html(map.column_label));
}

/// The shades and their values, below the grid.
std::string scale_svg(const HeatMap& map, const Layout& at) {
  constexpr int kSteps = 10;
  constexpr double kStep = 14;
  const double y = at.height - kScaleHeight + 16;
  std::string svg = fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{:.{}f}</text>\n", at.left - 6,
                                y + 11, map.low, map.decimals);
  for (int i = 0; i < kSteps; ++i) {
    const std::string place =
        fmt::format("x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"14\"", at.left + kStep * i, y, kStep - 1);
    svg += fmt::format("<rect class=\"ground\" {}/><rect class=\"cell\" {} fill-opacity=\"{:.3f}\"/>\n", place, place,
                       (i + 0.5) / kSteps);
  }
  return svg + fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{:.{}f}</text>\n", at.left + kStep * kSteps + 6, y + 11,
                           map.high, map.decimals);
}

std::string grid_svg(const HeatMap& map, const Layout& at) {
  PRISM_ASSERT(map.values.size() == map.rows.size() * map.columns.size(), "heat_map", "{} values for {} x {} cells",
               map.values.size(), map.rows.size(), map.columns.size());
  return names_svg(map, at) + cells_svg(map, at) + scale_svg(map, at);
}

}  // namespace

std::string heat_map_svg(const HeatMap& map) {
  const Layout at(map);
  return fmt::format(
      "<svg class=\"heat\" viewBox=\"0 0 {0:.0f} {1:.0f}\" style=\"{3}-width: {0:.0f}px\" role=\"img\" "
      "aria-label=\"{2}\">\n{4}</svg>\n",
      at.width, at.height, escape_html(plain_line(map.description)), map.columns.size() > kWideHeatMap ? "min" : "max",
      grid_svg(map, at));
}

std::string heat_map_file(const HeatMap& map) {
  const Layout at(map);
  return svg_on_paper(at.width, at.height, map.description, kHeatMapStyle,
                      fmt::format("<g class=\"heat\">\n{}</g>\n", grid_svg(map, at)));
}

}  // namespace prism
