#include "prism/report/page/page_script.h"

#include <cmath>

#include "prism/core/fields.h"
#include "prism/core/text/printable.h"
#include "prism/report/draw/escape.h"
#include "prism/report/draw/series.h"

namespace prism {
namespace {

/// Rounds to a tenth of a pixel.
double rounded(double pixels) {
  return std::round(10 * pixels) / 10;
}

/// Returns false for a point outside the scale.
bool is_inside(const Pixel& place, const PlotFrame& frame) {
  return place.x >= frame.left && place.x <= frame.right && place.y >= frame.top && place.y <= frame.bottom;
}

Json points_of(const Plot& plot) {
  Json points = Json::array();
  for (const auto& series : plot.series) {
    for (const auto& point : series.points) {
      const Pixel place = pixel_of(plot, point.x, point.y);
      if (point.text.empty() || !is_inside(place, plot_frame(plot))) continue;
      points.push_back(Json::array({rounded(place.x), rounded(place.y), series.series, point.text}));
    }
  }
  return points;
}

}  // namespace

std::string plot_data(const std::vector<std::string>& labels, const std::vector<Plot>& plots) {
  Json data = {{"series", Json::array()}, {"plots", Json::object()}};
  for (size_t i = 0; i < labels.size(); ++i) {
    data["series"].push_back(Json::array({plain_line(labels[i]), series_style(static_cast<int>(i)).colour}));
  }
  for (const auto& plot : plots) data["plots"][plot.id] = points_of(plot);
  return escape_script_json(data.dump());
}

}  // namespace prism
