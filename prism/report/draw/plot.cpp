#include "prism/report/draw/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "prism/core/error.h"
#include "prism/report/draw/gnuplot.h"
#include "prism/report/draw/plot_svg.h"
#include "prism/report/draw/series.h"

namespace prism {
namespace {

constexpr size_t kMostPoints = 600;  // more points of a curve would not be visible at this width
constexpr double kWidth = 480, kHeight = 320;
constexpr double kLeft = 78, kRowsLeft = 14, kRight = 16, kTop = 10, kBottom = 52;  // margins
// A row has a line of text above its marks, which are at whole numbers. kAboveMarks is the share of the row above them.
constexpr double kRowHeight = 36, kAboveMarks = 0.72;

/// The lower and upper end of the y axis; rows count from the top.
Interval y_ends(const Plot& plot) {
  if (plot.rows.empty()) return {plot.y.low, plot.y.high};
  return {static_cast<double>(plot.rows.size()) - kAboveMarks, -kAboveMarks};
}

/// The numbers at an axis: those given, or four to nine numbers, 1, 2 or 5 times a power of ten apart, with equal
/// decimals.
std::string tick_commands(char name, const PlotAxis& axis) {
  if (!axis.ticks.empty()) {
    std::string ticks;
    for (const auto& [position, number] : axis.ticks)
      ticks += fmt::format("{}\"{:.7g}\" {:.7g}", ticks.empty() ? "" : ", ", number, position / axis.unit);
    return fmt::format("set {}tics ({})\n", name, ticks);
  }
  const double rough = std::max(std::abs(axis.high - axis.low) / axis.unit / 6, axis.least_step);
  if (!std::isnormal(rough)) return {};
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  const double factor = rough / power < 1.5 ? 1 : rough / power < 3.5 ? 2 : rough / power < 7.5 ? 5 : 10;
  const double step = factor * power;
  const int decimals = std::clamp(-static_cast<int>(std::floor(std::log10(step) + 1e-9)), 0, 12);
  return fmt::format("set {0}tics {1:.7g}\nset format {0} \"%.{2}f\"\n", name, step, decimals);
}

std::string axis_commands(char name, const PlotAxis& axis) {
  return fmt::format("set {}range [{:.7g}:{:.7g}]\n", name, axis.low / axis.unit, axis.high / axis.unit) +
         tick_commands(name, axis);
}

std::string row_commands(const Plot& plot) {
  const Interval ends = y_ends(plot);
  return fmt::format("unset ytics\nset yrange [{:.7g}:{:.7g}]\n", ends.low, ends.high);
}

std::string margin_commands(const PlotFrame& frame) {
  const double height = frame.height;  // gnuplot counts from the bottom
  return fmt::format(
      "set lmargin at screen {:.7g}\nset rmargin at screen {:.7g}\nset tmargin at screen {:.7g}\nset bmargin at screen "
      "{:.7g}\n",
      frame.left / frame.width, frame.right / frame.width, 1 - frame.top / height, 1 - frame.bottom / height);
}

std::string zero_command(const char* from, const char* to) {
  return fmt::format("set arrow from {} to {} nohead lw 1 lc rgb \"{}\"\n", from, to, role_colour(PlotRole::kZero));
}

/// The columns x, y, ends of the x bar, ends of the y bar.
std::string data_block(const Plot& plot, size_t index) {
  const auto& points = plot.series[index].points;
  PRISM_ASSERT(!points.empty(), "plot", "series {} of {} has no points.", index, plot.id);
  std::string block = fmt::format("$data{} << EOD\n", index);
  const bool is_curve = plot.series[index].style != PlotStyle::kBoxes;
  const size_t stride = is_curve ? std::max<size_t>(1, (points.size() + kMostPoints - 1) / kMostPoints) : 1;
  for (size_t i = 0; i < points.size(); ++i) {
    if (i % stride != 0 && i + 1 != points.size()) continue;
    const auto& [x, y, x_bar, y_bar, text] = points[i];
    block += fmt::format("{:.7g} {:.7g} {:.7g} {:.7g} {:.7g} {:.7g}\n", x / plot.x.unit, y / plot.y.unit,
                         x_bar.low / plot.x.unit, x_bar.high / plot.x.unit, y_bar.low / plot.y.unit,
                         y_bar.high / plot.y.unit);
  }
  return block + "EOD\n";
}

/// Columns and style of one series. Each becomes one element of gnuplot's SVG, in this order.
std::string plot_clause(size_t index, const PlotSeries& series) {
  const SeriesStyle style = series_style(std::max(series.series, 0));
  const std::string dashes = *style.dashes ? fmt::format(" dt ({})", style.dashes) : "";
  const std::string strong = series_colour(style.colour), faint = faint_colour(style.colour);
  const std::string ink = role_colour(PlotRole::kInk);
  const auto clause = [&] {
    switch (series.style) {
      case PlotStyle::kFaint:
        return fmt::format("1:2 with lines lw 0.8 lc rgb \"{}\"", faint);
      case PlotStyle::kLine:
        return fmt::format("1:2 with lines lw 1.8{} lc rgb \"{}\"", dashes, strong);
      case PlotStyle::kPoints:
        return fmt::format("1:2 with linespoints lw 1.2{} pt {} ps 0.75 lc rgb \"{}\"", dashes, style.gnuplot_point,
                           strong);
      case PlotStyle::kBand:
        return fmt::format("1:5:6 with filledcurves fc rgb \"{}\" fs transparent solid {} noborder", strong,
                           series.opacity);
      case PlotStyle::kBars:
        return fmt::format("1:2:3:4:5:6 with xyerrorbars lw 1.6 pt {} ps 0.9 lc rgb \"{}\"", style.gnuplot_point,
                           strong);
      case PlotStyle::kDots:
        return fmt::format("1:2 with points pt 7 ps 0.45 lc rgb \"{}\"", faint);
      case PlotStyle::kBoxes:
        return fmt::format("1:2:3:4:5:6 with boxxyerror fc rgb \"{}\" fs transparent solid {} noborder", ink,
                           series.opacity);
      case PlotStyle::kGuide:
        return fmt::format("1:2 with lines lw 1.2 dt (5,4) lc rgb \"{}\"", ink);
    }
    throw InternalError("plot", "a series has no style.");
  };
  return fmt::format("$data{} using {}", index, clause());
}

}  // namespace

PlotFrame plot_frame(const Plot& plot) {
  if (plot.rows.empty()) {
    const double height = plot.square ? kWidth - kLeft - kRight + kTop + kBottom : kHeight;
    return {kWidth, height, kLeft, kWidth - kRight, kTop, height - kBottom};
  }
  const double bottom = kTop + kRowHeight * static_cast<double>(plot.rows.size());
  return {kWidth, bottom + kBottom, kRowsLeft, kWidth - kRight, kTop, bottom};
}

Pixel pixel_of(const Plot& plot, double x, double y) {
  const PlotFrame frame = plot_frame(plot);
  const Interval ends = y_ends(plot);
  return {frame.left + (x - plot.x.low) / (plot.x.high - plot.x.low) * (frame.right - frame.left),
          frame.bottom - (y - ends.low) / (ends.high - ends.low) * (frame.bottom - frame.top)};
}

std::string gnuplot_script(const Plot& plot) {
  const PlotFrame frame = plot_frame(plot);
  const std::string ink = role_colour(PlotRole::kInk);
  std::string script = fmt::format(
      "set terminal svg size {:.0f},{:.0f} dynamic noenhanced font \",13\"\nset encoding utf8\nset minussign\n"
      "set key off\nset errorbars 0\n",
      frame.width, frame.height);
  script += fmt::format("set border 1 lc rgb \"{}\"\n", ink);
  script += fmt::format("set tics nomirror out scale 0.4 textcolor rgb \"{}\"\nset ytics scale 0\n", ink);
  script += fmt::format("set grid {} lt 1 lw 0.7 lc rgb \"{}\"\n", plot.rows.empty() ? "ytics" : "xtics",
                        role_colour(PlotRole::kGrid));
  script += margin_commands(frame) + axis_commands('x', plot.x);
  script += plot.rows.empty() ? axis_commands('y', plot.y) : row_commands(plot);
  if (plot.x.zero_line) script += zero_command("first 0, graph 0", "first 0, graph 1");
  if (plot.y.zero_line) script += zero_command("graph 0, first 0", "graph 1, first 0");
  for (size_t i = 0; i < plot.series.size(); ++i) script += data_block(plot, i);
  for (size_t i = 0; i < plot.series.size(); ++i)
    script += (i == 0 ? "plot " : ", \\\n     ") + plot_clause(i, plot.series[i]);
  return script + "\n";
}

std::string draw_plot(const Plot& plot, const std::string& gnuplot) {
  return inline_svg(run_gnuplot(gnuplot, gnuplot_script(plot)), plot);
}

}  // namespace prism
