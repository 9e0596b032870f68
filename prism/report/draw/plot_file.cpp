#include "prism/report/draw/plot_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "prism/core/files.h"
#include "prism/core/text/printable.h"
#include "prism/report/draw/escape.h"
#include "prism/report/draw/series.h"
#include "prism/report/page/page_style.h"

namespace prism {
namespace {

// In pixels. A letter's width is that of wide letters, since fonts cannot be measured here.
constexpr double kKeyWidth = 34, kLetter = 7.5, kGap = 18, kLine = 20;

constexpr const char* kFileStyle = R"css(
.plot { color: var(--plot-ink); }
.axis { font-size: 13px; fill: currentColor; text-anchor: middle; }
.row { font-size: 13px; fill: var(--ink); paint-order: stroke; stroke: var(--paper); stroke-width: 4px; }
.name { font-size: 13px; fill: var(--ink); }
)css";

constexpr const char* kPaperStyle = R"css(
.paper { fill: #fdfdfc; fill: var(--paper); }
text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", Arial, sans-serif; }
)css";

struct Key {
  std::string svg;
  double height = 0;
};

/// The series in rows as wide as the plot. The rows of a forest plot are labelled in the plot.
Key key_below(const Plot& plot, const std::vector<std::string>& labels) {
  std::set<int> shown;
  if (plot.rows.empty()) {
    for (const auto& series : plot.series)
      if (series.series >= 0 && series.series < static_cast<int>(labels.size())) shown.insert(series.series);
  }
  const PlotFrame frame = plot_frame(plot);
  Key key;
  double x = frame.left, y = frame.height;
  for (const int series : shown) {
    const std::string label = plain_line(labels[static_cast<size_t>(series)]);
    const double width = kKeyWidth + kLetter * static_cast<double>(display_width(label)) + kGap;
    if (x > frame.left && x + width > frame.right) {
      x = frame.left;
      y += kLine;
    }
    key.svg += fmt::format(
        "<g transform=\"translate({:.1f},{:.1f})\">{}<text class=\"name\" x=\"{:.0f}\" y=\"9\">{}"
        "</text></g>\n",
        x, y, series_key_svg(series), kKeyWidth, escape_html(label));
    x += width;
    key.height = y + kLine - frame.height;
  }
  return key;
}

/// Removes the attributes by which a page's script would take the drawing for one of the page's plots.
std::string without_hooks(std::string drawing) {
  for (const std::string hook : {" data-plot=\"", " data-series=\""})
    for (size_t at = drawing.find(hook); at != std::string::npos; at = drawing.find(hook, at))
      drawing.erase(at, drawing.find('"', at + hook.size()) + 1 - at);
  return drawing;
}

}  // namespace

std::string plot_file(const Plot& plot, const std::vector<std::string>& labels, const std::string& gnuplot) {
  const std::string drawing = without_hooks(draw_plot(plot, gnuplot));
  const PlotFrame frame = plot_frame(plot);
  const Key key = key_below(plot, labels);
  const std::string inner =
      fmt::format("<svg width=\"{:.0f}\" height=\"{:.0f}\">{}</svg>\n{}", frame.width, frame.height, drawing, key.svg);
  return svg_on_paper(frame.width, frame.height + key.height, plot.description, kFileStyle, inner);
}

std::string figure_file_name(const Plot& plot) {
  return plot.id + ".svg";
}

void write_figures(const std::vector<FigureFile>& files, const std::filesystem::path& folder) {
  make_folder(folder);
  for (const auto& [name, svg] : files) write_file(folder / name, svg);
}

std::string svg_on_paper(double width, double height, const std::string& description, const std::string& style,
                         const std::string& drawing) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\">\n<title>{2}</title>\n<style>{3}{4}{5}</style>\n"
      "<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n{6}</svg>\n",
      width, height, escape_html(plain_line(description)), kPageColours, kPaperStyle, style, drawing);
}

}  // namespace prism
