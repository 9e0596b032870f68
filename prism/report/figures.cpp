#include "prism/report/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "prism/core/names.h"

namespace prism {
namespace {

constexpr size_t kMostFaintRuns = 4;  // more recorded curves hide each other
constexpr double kFirstPart = 0.1;    // of the tokens: from initial loss to the part worth comparing
constexpr double kMargin = 0.04;      // of the scale, below and above
constexpr const char* kUnit = "nats per token";

PlotPoint point_of(const CurvePoint& point) {
  return {point.tokens, point.loss, 0, 0};
}

std::vector<PlotPoint> points_of(const std::vector<CurvePoint>& curve) {
  std::vector<PlotPoint> points(curve.size());
  std::transform(curve.begin(), curve.end(), points.begin(), point_of);
  return points;
}

std::string labels_of(const Comparison& comparison) {
  std::vector<std::string> labels;
  for (const auto& group : comparison.groups) labels.push_back(group.label);
  return join_names(labels);
}

size_t count_runs(const Comparison& comparison) {
  size_t count = 0;
  for (const auto& group : comparison.groups) count += group.runs.size();
  return count;
}

/// What the two loss plots show, and what lies above them.
struct LossScale {
  double low = std::numeric_limits<double>::max(), high = std::numeric_limits<double>::lowest();
  double highest = std::numeric_limits<double>::lowest();
  bool empty() const { return low > high; }
};

/// Covers all validation and smoothed training losses, those of the first part only if there are no later ones.
LossScale loss_scale(const Comparison& comparison) {
  std::vector<CurvePoint> all;
  for (const auto& group : comparison.groups) {
    for (const auto& run : group.runs) {
      const auto smooth = smooth_curve(run.train);
      all.insert(all.end(), smooth.begin(), smooth.end());
      all.insert(all.end(), run.valid.begin(), run.valid.end());
    }
  }
  int64_t most = 0;
  for (const auto& point : all) most = std::max(most, point.tokens);
  const auto later = [&](const CurvePoint& point) {
    return static_cast<double>(point.tokens) >= kFirstPart * static_cast<double>(most);
  };
  const bool use_all = std::count_if(all.begin(), all.end(), later) < 4;
  LossScale scale;
  for (const auto& point : all) {
    scale.highest = std::max(scale.highest, point.loss);
    if (!use_all && !later(point)) continue;
    scale.low = std::min(scale.low, point.loss);
    scale.high = std::max(scale.high, point.loss);
  }
  return scale;
}

std::optional<std::pair<double, double>> with_margin(double low, double high) {
  const double margin = std::max(kMargin * (high - low), 1e-6 * std::max(1.0, std::max(-low, high)));
  return std::pair(low - margin, high + margin);
}

std::optional<std::pair<double, double>> loss_range(const Comparison& comparison) {
  const LossScale scale = loss_scale(comparison);
  return scale.empty() ? std::nullopt : with_margin(scale.low, scale.high);
}

/// A line or points, and the band behind it where there is a deviation.
void add_statistics(Plot& plot, int series, const std::vector<CurveStatistic>& curve) {
  if (curve.empty()) return;
  PlotSeries band{PlotStyle::kBand, series, {}}, line{PlotStyle::kPoints, series, {}};
  for (const auto& [tokens, loss] : curve) {
    line.points.push_back({tokens, loss.mean, 0, 0});
    if (loss.count > 1) band.points.push_back({tokens, 0, loss.mean - loss.deviation, loss.mean + loss.deviation});
  }
  if (band.points.size() > 1) plot.series.insert(plot.series.begin(), std::move(band));
  plot.series.push_back(std::move(line));
}

}  // namespace

Plot train_plot(const Comparison& comparison) {
  Plot plot{"train", fmt::format("training loss ({})", kUnit), "", {}, loss_range(comparison), false};
  plot.description = "Training loss against trained tokens of " + labels_of(comparison);
  const bool faint = count_runs(comparison) <= kMostFaintRuns;
  std::vector<PlotSeries> lines;
  for (size_t i = 0; i < comparison.groups.size(); ++i) {
    for (const auto& run : comparison.groups[i].runs) {
      if (run.train.empty()) continue;
      const int series = static_cast<int>(i);
      if (faint) plot.series.push_back({PlotStyle::kFaint, series, points_of(run.train)});
      lines.push_back({PlotStyle::kLine, series, points_of(smooth_curve(run.train))});
    }
  }
  plot.series.insert(plot.series.end(), lines.begin(), lines.end());
  return plot;
}

Plot valid_plot(const Comparison& comparison) {
  Plot plot{"valid", fmt::format("validation loss ({})", kUnit), "", {}, loss_range(comparison), false};
  plot.description = "Validation loss against trained tokens of " + labels_of(comparison);
  for (size_t i = 0; i < comparison.groups.size(); ++i) {
    add_statistics(plot, static_cast<int>(i), validation_curve(comparison.groups[i]));
  }
  return plot;
}

Plot difference_plot(const Comparison& comparison) {
  Plot plot{"difference", fmt::format("difference ({})", kUnit), "", {}, std::nullopt, true};
  plot.description = fmt::format("Validation loss minus that of {} at equal trained tokens, of {}",
                                 comparison.groups[comparison.baseline].label, labels_of(comparison));
  double low = 0, high = 0;
  for (size_t i = 0; i < comparison.groups.size(); ++i) {
    if (i == comparison.baseline) continue;
    std::vector<CurveStatistic> points;
    for (const auto& [tokens, gap] :
         loss_difference(comparison.groups[i], comparison.groups[comparison.baseline]).points) {
      // Before training, the gap is that of two random models.
      if (tokens > 0) points.push_back({tokens, gap.difference});
    }
    add_statistics(plot, static_cast<int>(i), points);
    for (const auto& [tokens, loss] : points) {
      low = std::min(low, loss.mean - loss.deviation);
      high = std::max(high, loss.mean + loss.deviation);
    }
  }
  plot.y_range = with_margin(low, high);
  return plot;
}

bool cuts_first_part(const Comparison& comparison) {
  const LossScale scale = loss_scale(comparison);
  return !scale.empty() && scale.highest > scale.high;
}

}  // namespace prism
