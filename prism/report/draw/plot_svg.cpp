#include "prism/report/draw/plot_svg.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>

#include "prism/core/error.h"
#include "prism/core/text/printable.h"
#include "prism/report/draw/escape.h"
#include "prism/report/draw/series.h"

namespace prism {
namespace {

// Placeholder colours: red is always kOurs, green is the kind, blue the index within the kind.
constexpr int kOurs = 1, kRoleColour = 1, kSeriesColour = 2, kFaintColour = 3;
constexpr std::array kRoles = {"ink", "grid", "zero"};
constexpr double kLabelRise = 12;                    // pixels from a row's label down to its marks
constexpr double kXLabelRise = 7, kYLabelLeft = 13;  // pixels from an axis' label to the SVG's edge

std::string colour_code(int kind, int index) {
  return fmt::format("#{:02x}{:02x}{:02x}", kOurs, kind, index);
}

std::string_view cut_between(std::string_view text, std::string_view from, std::string_view to, size_t* begin) {
  *begin = text.find(from);
  if (*begin == std::string_view::npos) return {};
  const size_t end = text.find(to, *begin);
  return text.substr(*begin, end == std::string_view::npos ? end : end + to.size() - *begin);
}

/// Removes every stretch from `from` to `to`, including both.
void remove_all(std::string& text, std::string_view from, std::string_view to) {
  size_t begin = 0;
  for (auto cut = cut_between(text, from, to, &begin); !cut.empty(); cut = cut_between(text, from, to, &begin)) {
    text.erase(begin, cut.size());
  }
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

/// The style that replaces a colour of role_colour(), series_colour() or faint_colour(); empty for any other colour.
std::string colour_style(std::string_view property, int red, int green, int blue) {
  if (red != kOurs || blue < 0) return {};
  if (green == kRoleColour && blue < static_cast<int>(kRoles.size())) {
    return fmt::format("{}:var(--plot-{})", property, kRoles[static_cast<size_t>(blue)]);
  }
  if (blue >= kSeriesColours || (green != kSeriesColour && green != kFaintColour)) return {};
  return fmt::format("{}:var(--series-{}){}", property, blue, green == kFaintColour ? ";opacity:.4" : "");
}

/// stroke='rgb(1, 2, 0)' -> style="stroke:var(--series-0)": not every program supports variables in attributes.
std::string colours_by_variable(std::string_view svg) {
  std::string result;
  size_t done = 0;
  for (size_t at = svg.find("rgb("); at != std::string_view::npos; at = svg.find("rgb(", at + 1)) {
    int red = -1, green = -1, blue = -1;
    const std::string numbers(svg.substr(at, 24));
    const size_t equals = svg.rfind('=', at), close = svg.find_first_of("'\"", at);
    if (std::sscanf(numbers.c_str(), "rgb( %d , %d , %d )", &red, &green, &blue) != 3) continue;
    if (equals == std::string_view::npos || close == std::string_view::npos) continue;
    const size_t name_end = svg.find_last_not_of(' ', equals - 1) + 1,
                 name = svg.find_last_of(" \t\n", name_end - 1) + 1;
    const std::string style = colour_style(svg.substr(name, name_end - name), red, green, blue);
    if (style.empty()) continue;
    result += svg.substr(done, name - done);
    result += fmt::format("style=\"{}\"", style);
    done = close + 1;
  }
  return result + std::string(svg.substr(done));
}

std::string series_attribute(int series) {
  return series == kNoSeries ? "" : fmt::format(" data-series=\"{}\"", series);
}

/// gnuplot numbers the elements it draws from 1, in the order of the series.
void name_series(std::string& body, const Plot& plot) {
  for (size_t i = 0; i < plot.series.size(); ++i) {
    const std::string name = fmt::format("id=\"{}-plot_{}\"", plot.id, i + 1);
    replace_all(body, name, name + series_attribute(plot.series[i].series));
  }
}

/// gnuplot omits a label that does not fit beside numbers and margin, so the axes' labels are added here.
std::string axis_labels(const Plot& plot) {
  const PlotFrame frame = plot_frame(plot);
  const double x = (frame.left + frame.right) / 2, y = (frame.top + frame.bottom) / 2;
  std::string labels = fmt::format("<text class=\"axis\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", x,
                                   frame.height - kXLabelRise, escape_html(plot.x.label));
  if (!plot.rows.empty()) return labels;
  return labels + fmt::format("<text class=\"axis\" transform=\"translate({:.1f},{:.1f}) rotate(-90)\">{}</text>\n",
                              kYLabelLeft, y, escape_html(plot.y.label));
}

std::string row_labels(const Plot& plot) {
  std::string labels;
  for (size_t i = 0; i < plot.rows.size(); ++i) {
    const Pixel place = pixel_of(plot, plot.x.low, static_cast<double>(i));
    labels += fmt::format("<text class=\"row\"{} x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                          series_attribute(plot.rows[i].series), place.x, place.y - kLabelRise,
                          escape_html(plain_line(plot.rows[i].label)));
  }
  return labels;
}

}  // namespace

std::string role_colour(PlotRole role) {
  return colour_code(kRoleColour, static_cast<int>(role));
}

std::string series_colour(int colour) {
  return colour_code(kSeriesColour, colour);
}

std::string faint_colour(int colour) {
  return colour_code(kFaintColour, colour);
}

std::string inline_svg(std::string_view svg, const Plot& plot) {
  const size_t open = svg.find("<svg"), start = open == std::string_view::npos ? open : svg.find('>', open);
  const size_t end = svg.rfind("</svg>");
  PRISM_ASSERT(start != std::string_view::npos && end != std::string_view::npos && start < end, "plot",
               "gnuplot wrote no SVG for {}.", plot.id);
  std::string body(svg.substr(start + 1, end - start - 1));
  remove_all(body, "<title>", "</title>");
  remove_all(body, "<desc>", "</desc>");
  remove_all(body, "<filter", "</filter>");
  for (const char* attribute : {" color=\"black\"", " color=\"#FFFFFF\"", " font-family=\"Arial\"",
                                " stroke-linecap=\"butt\"", " stroke-linejoin=\"miter\"", " class=\"gridline\""}) {
    replace_all(body, attribute, "");
  }
  replace_all(body, "stroke=\"black\"", "stroke=\"currentColor\"");
  replace_all(body, "xlink:href", "href");
  // A page has several plots, so their ids must differ.
  replace_all(body, "gpPt", plot.id + "-point");
  replace_all(body, "gpDot", plot.id + "-dot");
  replace_all(body, "gnuplot_", plot.id + "-");
  name_series(body, plot);
  const PlotFrame frame = plot_frame(plot);
  return fmt::format(
      "<svg class=\"plot\" data-plot=\"{}\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" "
      "aria-label=\"{}\">{}{}{}</svg>\n",
      plot.id, frame.width, frame.height, escape_html(plot.description), colours_by_variable(body), axis_labels(plot),
      row_labels(plot));
}

}  // namespace prism
