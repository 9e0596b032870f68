#include "prism/report/page/swept_plots.h"

#include <fmt/format.h>

#include <cmath>
#include <set>
#include <string>

#include "prism/core/text/names.h"
#include "prism/report/compare/swept.h"
#include "prism/report/draw/number_text.h"
#include "prism/report/draw/plot_parts.h"
#include "prism/report/page/figures.h"

namespace prism {
namespace {

/// Where the values of a swept number stand.
class SweptScale {
 public:
  explicit SweptScale(const std::set<double>& values)
      : values_(values), is_logarithmic_(*values.begin() > 0 && *values.rbegin() > kWide * *values.begin()) {}

  double position(double value) const { return is_logarithmic_ ? std::log2(value) : value; }
  PlotAxis axis(const std::string& label) const {
    Extent extent;
    for (const double value : values_) extent.add(position(value));
    auto axis = axis_over(label, extent);
    const size_t stride = values_.size() / kMostTicks + 1;
    size_t index = 0;
    for (const double value : values_)
      if (index++ % stride == 0) axis.ticks.push_back({position(value), value});
    return axis;
  }

 private:
  static constexpr double kWide = 4;
  static constexpr size_t kMostTicks = 10;

  std::set<double> values_;
  bool is_logarithmic_;
};

/// "learning rate". Anything that is no letter, digit or underscore is dropped, because axes have no text of a run.
std::string field_words(const std::string& field) {
  std::string words;
  for (const char letter : field) {
    if (letter == '_') words += ' ';
    if (('a' <= letter && letter <= 'z') || ('0' <= letter && letter <= '9')) words += letter;
  }
  return words;
}

}  // namespace

std::vector<LabelledPlot> swept_plots(const Comparison& comparison) {
  const auto swept = swept_field(comparison);
  if (!swept) return {};
  std::set<double> values;
  Extent extent;
  for (const auto& arm : swept->arms)
    for (const auto& point : arm.points) {
      values.insert(point.value);
      extent.add(deviation_bar(point.loss));
    }
  const SweptScale scale(values);
  LabelledPlot all{.plot = {.id = "swept", .description = ""}, .labels = {}};
  for (const auto& arm : swept->arms) {
    std::vector<PlacedStatistic> points;
    for (const auto& [value, loss] : arm.points)
      points.push_back({scale.position(value), loss, fmt::format("{:g}: {}", value, spread_text(loss, kLossNumber))});
    add_statistics(all.plot, all.labels.size(), swept->arms.size(), points);
    all.labels.push_back(arm.label.empty() ? "all runs" : arm.label);
  }
  const auto field = field_words(swept->name);
  all.plot.description =
      fmt::format("Final validation {} against the {}, of {}", comparison.metric.noun(), field, join_names(all.labels));
  all.plot.x = scale.axis(field);
  all.plot.y = axis_over(metric_label(comparison, "final validation " + comparison.metric.noun()), extent);
  return {all};
}

}  // namespace prism
