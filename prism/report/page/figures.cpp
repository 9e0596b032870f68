#include "prism/report/page/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "prism/core/text/names.h"
#include "prism/report/compare/cost.h"
#include "prism/report/compare/measured.h"
#include "prism/report/draw/number_text.h"
#include "prism/report/draw/plot_parts.h"

namespace prism {
namespace {

constexpr size_t kMostFaintRuns = 4;  // more recorded curves would hide each other
constexpr size_t kMostLineRuns = 12;  // more smoothed curves could not be told apart
constexpr size_t kMostTexts = 60;     // points of a curve with a text for hovering
constexpr double kFirstPart = 0.1;    // share of the training in which the loss falls from its initial value

const RunGroup& baseline_of(const Comparison& comparison) {
  return comparison.groups[comparison.baseline];
}

size_t count_runs(const Comparison& comparison) {
  size_t count = 0;
  for (const auto& group : comparison.groups) count += group.runs.size();
  return count;
}

// ---- axes ----

/// The range that a plot of losses shows, and whether curves continue above it.
struct LossScale {
  double low = std::numeric_limits<double>::max(), high = std::numeric_limits<double>::lowest();
  double highest = std::numeric_limits<double>::lowest();
  bool empty() const { return low > high; }
};

/// Covers the smoothed training losses, with the validation losses if the metric is one, or the validations alone;
/// those of the first part only if there are no later ones.
LossScale loss_scale(const Comparison& comparison, Losses losses) {
  const bool is_loss = losses == Losses::training || comparison.metric.is_loss();
  std::vector<CurvePoint> all;
  for (const auto& group : comparison.groups) {
    for (const auto& run : group.runs) {
      if (losses == Losses::training) {
        const auto smooth = smooth_curve(run.train);
        all.insert(all.end(), smooth.begin(), smooth.end());
      }
      if (losses == Losses::validation || comparison.metric.is_loss())
        all.insert(all.end(), run.valid.begin(), run.valid.end());
    }
  }
  int64_t most = 0;
  for (const auto& point : all) most = std::max(most, point.trained);
  const auto later = [&](const CurvePoint& point) {
    return static_cast<double>(point.trained) >= kFirstPart * static_cast<double>(most);
  };
  // The first part of a loss is far above the rest. A metric that is not a loss may begin at either end of its scale.
  const bool use_all = !is_loss || std::count_if(all.begin(), all.end(), later) < 4;
  LossScale scale;
  for (const auto& point : all) {
    scale.highest = std::max(scale.highest, point.loss);
    if (!use_all && !later(point)) continue;
    scale.low = std::min(scale.low, point.loss);
    scale.high = std::max(scale.high, point.loss);
  }
  return scale;
}

PlotAxis loss_axis(const Comparison& comparison, Losses losses, const std::string& label) {
  const LossScale scale = loss_scale(comparison, losses);
  return axis_over(label, scale.empty() ? Extent{0, 1} : Extent{scale.low, scale.high});
}

// ---- series ----

/// A line of the mean over curves, at points that all of them have. Some of its points have a text for hovering.
PlotSeries training_line(PlotStyle style, size_t group, const std::vector<const std::vector<CurvePoint>*>& curves,
                         const std::string& counted) {
  PlotSeries line{style, static_cast<int>(group), {}};
  const auto values = curve_statistics(curves);
  const size_t stride = values.size() / kMostTexts + 1;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto& [trained, loss] = values[i];
    const bool told = style == PlotStyle::kLine && (values.size() - 1 - i) % stride == 0;
    line.points.push_back({.x = static_cast<double>(trained),
                           .y = loss.mean,
                           .text = told ? trained_text(trained, counted) + spread_text(loss, kLossNumber) : ""});
  }
  return line;
}

/// The mean of the smoothed curves of the group's runs.
PlotSeries mean_training_line(const RunGroup& group, size_t index, const std::string& counted,
                              std::vector<CurvePoint> Run::*losses = &Run::train) {
  std::vector<std::vector<CurvePoint>> smooth;
  for (const Run* run : counted_runs(group)) {
    if (!(run->*losses).empty()) smooth.push_back(smooth_curve(run->*losses));
  }
  std::vector<const std::vector<CurvePoint>*> curves;
  for (const auto& curve : smooth) curves.push_back(&curve);
  return training_line(PlotStyle::kLine, index, curves, counted);
}

/// The bar that shows the interval of a difference; of zero length, i.e. not drawn, if there is no interval.
Interval interval_bar(const PairedDifference& gap) {
  return gap.has_interval() ? gap.interval : Interval{gap.difference.mean, gap.difference.mean};
}

std::string gap_text(const PairedDifference& gap) {
  const std::string text = spread_text(gap.difference, kLossDifference);
  return minus_signs(gap.has_interval() ? text + ", 95% interval " + interval_text(gap.interval, kLossDifference)
                                        : text);
}

/// One group's row of the forest plot: its seeds, then its mean with the interval.
void add_forest_row(Plot& plot, size_t group, const PairedDifference& gap) {
  const int series = static_cast<int>(group);
  const double y = static_cast<double>(plot.rows.size());
  PlotSeries seeds{PlotStyle::kDots, series, {}};
  for (const auto& [seed, value] : gap.seeds) {
    const std::string text =
        fmt::format("seed {}: {}", grouped(seed), minus_signs(number_text(value, kLossDifference)));
    seeds.points.push_back({.x = value, .y = y, .text = text});
  }
  const Interval bar = interval_bar(gap);
  const PlotPoint mean{.x = gap.difference.mean, .y = y, .x_bar = bar, .y_bar = {y, y}, .text = gap_text(gap)};
  plot.series.push_back({PlotStyle::kBars, series, {mean}});
  if (gap.has_interval()) plot.series.push_back(std::move(seeds));
}

/// Areas over the layers whose number of heads differs from the baseline's; adjacent layers share one area.
PlotSeries other_heads(size_t group, const std::vector<LayerDifference>& layers) {
  PlotSeries boxes{PlotStyle::kBoxes, static_cast<int>(group), {}};
  for (const auto& layer : layers) {
    if (!layer.other_heads) continue;
    const double x = static_cast<double>(layer.layer);
    const bool follows = !boxes.points.empty() && boxes.points.back().x_bar.high == x - 0.5;
    if (!follows) boxes.points.push_back({.x = x, .x_bar = {x - 0.5, x}});
    boxes.points.back().x_bar.high = x + 0.5;
  }
  return boxes;
}

/// Draws the areas behind everything else, as high as the plot. Together they are as dark as one band.
void add_other_heads(Plot& plot, std::vector<PlotSeries> areas) {
  std::erase_if(areas, [](const PlotSeries& area) { return area.points.empty(); });
  for (auto& area : areas) {
    area.opacity = kBandOpacity / static_cast<double>(areas.size());
    for (auto& point : area.points) {
      point.y = plot.y.low;
      point.y_bar = {plot.y.low, plot.y.high};
    }
  }
  plot.series.insert(plot.series.begin(), areas.begin(), areas.end());
}

}  // namespace

std::string metric_label(const Comparison& comparison, const std::string& what) {
  return what + (comparison.metric.is_loss() ? fmt::format(" ({})", comparison.loss_unit()) : "");
}

Plot train_plot(const Comparison& comparison) {
  Plot plot{.id = "train",
            .description = fmt::format("Training loss against trained {} of {}", comparison.counted(),
                                       join_names(labels_of(comparison.groups)))};
  const bool faint = count_runs(comparison) <= kMostFaintRuns;
  std::vector<PlotSeries> lines;
  for (size_t i = 0; i < comparison.groups.size(); ++i) {
    if (shows_mean_training(comparison)) {
      lines.push_back(mean_training_line(comparison.groups[i], i, comparison.counted()));
      continue;
    }
    for (const auto& run : comparison.groups[i].runs) {
      const auto smooth = smooth_curve(run.train);
      if (faint) plot.series.push_back(training_line(PlotStyle::kFaint, i, {&run.train}, comparison.counted()));
      lines.push_back(training_line(PlotStyle::kLine, i, {&smooth}, comparison.counted()));
    }
  }
  plot.series.insert(plot.series.end(), lines.begin(), lines.end());
  std::erase_if(plot.series, [](const PlotSeries& series) { return series.points.empty(); });
  plot.x = training_axis(plot, comparison.counted());
  plot.y = loss_axis(comparison, Losses::training, fmt::format("training loss ({})", comparison.loss_unit()));
  return plot;
}

Plot valid_plot(const Comparison& comparison) {
  Plot plot{.id = "valid",
            .description = fmt::format("Validation {} against trained {} of {}", comparison.metric.noun(),
                                       comparison.counted(), join_names(labels_of(comparison.groups)))};
  for (size_t i = 0; i < comparison.groups.size(); ++i) {
    std::vector<PlacedStatistic> values;
    for (const auto& [trained, loss] : validation_curve(comparison.groups[i])) {
      values.push_back({static_cast<double>(trained), loss,
                        trained_text(trained, comparison.counted()) + spread_text(loss, kLossNumber)});
    }
    add_statistics(plot, i, comparison.groups.size(), values);
  }
  plot.x = training_axis(plot, comparison.counted());
  plot.y =
      loss_axis(comparison, Losses::validation, metric_label(comparison, "validation " + comparison.metric.noun()));
  return plot;
}

Plot difference_plot(const Comparison& comparison) {
  const RunGroup& baseline = baseline_of(comparison);
  Plot plot{
      .id = "difference",
      .description = fmt::format("Validation {} minus that of {} at equal trained {}, of {}", comparison.metric.noun(),
                                 baseline.label, comparison.counted(), join_names(labels_of(comparison.groups)))};
  Extent extent{0, 0};
  for (size_t i = 0; i < comparison.groups.size(); ++i) {
    if (i == comparison.baseline) continue;
    std::vector<PlacedStatistic> values;
    for (const auto& [trained, gap] : loss_difference(comparison.groups[i], baseline).points) {
      // Before training, the difference is that of two random models.
      if (trained == 0) continue;
      values.push_back(
          {static_cast<double>(trained), gap.difference, trained_text(trained, comparison.counted()) + gap_text(gap)});
      extent.add(deviation_bar(gap.difference));
    }
    add_statistics(plot, i, comparison.groups.size(), values);
  }
  plot.x = training_axis(plot, comparison.counted());
  plot.y = axis_over(metric_label(comparison, "difference"), extent);
  plot.y.zero_line = true;
  return plot;
}

Plot share_plot(const Comparison& comparison) {
  Plot plot{.id = "head-share", .description = ""};
  Extent extent{0, 0};
  std::vector<std::string> labels;
  for (size_t i = 0; i < comparison.groups.size(); ++i) {
    const auto& group = comparison.groups[i];
    auto line = mean_training_line(group, i, comparison.counted(), &Run::train_share);
    std::vector<const std::vector<CurvePoint>*> curves;
    for (const Run* run : counted_runs(group))
      if (!run->valid_share.empty()) curves.push_back(&run->valid_share);
    PlotSeries points{PlotStyle::kDots, static_cast<int>(i), {}};
    for (const auto& [trained, share] : curve_statistics(curves))
      points.points.push_back(
          {.x = static_cast<double>(trained),
           .y = share.mean,
           .text = "validation, " + trained_text(trained, comparison.counted()) + spread_text(share, kLossNumber)});
    if (!line.points.empty() || !points.points.empty()) labels.push_back(group.label);
    for (auto* series : {&line, &points}) {
      for (const auto& point : series->points) extent.add(point.y);
      if (!series->points.empty()) plot.series.push_back(std::move(*series));
    }
  }
  plot.description = fmt::format("Share of heads s against trained {} of {}", comparison.counted(), join_names(labels));
  plot.x = training_axis(plot, comparison.counted());
  plot.y = axis_over("share of heads s", extent);
  plot.y.low = 0;
  return plot;
}

Plot forest_plot(const Comparison& comparison) {
  const RunGroup& baseline = baseline_of(comparison);
  Plot plot{
      .id = "forest",
      .description = fmt::format("Final validation {} minus that of {}, with 95% intervals, of {}",
                                 comparison.metric.noun(), baseline.label, join_names(labels_of(comparison.groups)))};
  Extent extent{0, 0};
  for (size_t i = 0; i < comparison.groups.size(); ++i) {
    const auto gap = final_difference(comparison.groups[i], baseline);
    if (i == comparison.baseline || !gap) continue;
    add_forest_row(plot, i, gap->loss);
    plot.rows.push_back({static_cast<int>(i), comparison.groups[i].label});
    extent.add(interval_bar(gap->loss));
    for (const auto& seed : gap->loss.seeds) extent.add(seed.value);
  }
  plot.x = axis_over(metric_label(comparison, "difference in final validation " + comparison.metric.noun()), extent);
  plot.x.zero_line = true;
  return plot;
}

Plot pareto_plot(const Comparison& comparison) {
  Plot plot{
      .id = "pareto",
      .description = fmt::format("Final validation {} against training {} per second of {}", comparison.metric.noun(),
                                 comparison.counted(), join_names(labels_of(comparison.groups)))};
  const auto points = cost_points(comparison);
  if (points.size() < 2) return plot;
  PlotSeries front{PlotStyle::kGuide, kNoSeries, {}};
  Extent rates, losses;
  for (const auto& point : points) {
    const Interval rate = deviation_bar(point.rate), loss = deviation_bar(point.loss);
    const PlotPoint place{.x = point.rate.mean,
                          .y = point.loss.mean,
                          .x_bar = rate,
                          .y_bar = loss,
                          .text = fmt::format("{} at {} {}/s{}", spread_text(point.loss, kLossNumber),
                                              spread_text(point.rate, kWholeNumber), comparison.counted(),
                                              point.on_front ? ", on the front" : "")};
    plot.series.push_back({PlotStyle::kBars, static_cast<int>(point.group), {place}});
    if (point.on_front) front.points.push_back({.x = place.x, .y = place.y});
    rates.add(rate);
    losses.add(loss);
  }
  if (front.points.size() > 1) plot.series.insert(plot.series.begin(), std::move(front));
  const PlotAxis x = axis_over("", rates);
  plot.x = counting_axis(fmt::format("training {}/s", comparison.counted()), x.low, x.high);
  plot.y = axis_over(metric_label(comparison, "final validation " + comparison.metric.noun()), losses);
  return plot;
}

Plot distance_plot(const Comparison& comparison) {
  Plot plot{.id = "distance",
            .description = "Mean attention distance of each layer of " + join_names(labels_of(comparison.groups))};
  Extent extent{0, 0};
  for (size_t i = 0; i < comparison.groups.size(); ++i) {
    std::vector<PlacedStatistic> values;
    for (const auto& [layer, distance] : layer_distances(comparison.groups[i])) {
      values.push_back({static_cast<double>(layer), distance,
                        fmt::format("layer {}: {} tokens", layer, spread_text(distance, kDistanceNumber))});
      extent.add(deviation_bar(distance));
    }
    add_statistics(plot, i, comparison.groups.size(), values);
  }
  plot.x = layer_axis(plot);
  plot.y = axis_over("mean attention distance (tokens)", extent);
  plot.y.low = std::min(extent.low, 0.0);
  return plot;
}

Plot distance_difference_plot(const Comparison& comparison) {
  const RunGroup& baseline = baseline_of(comparison);
  Plot plot{.id = "distance-difference",
            .description = fmt::format("Mean attention distance of each layer minus that of {}, of {}", baseline.label,
                                       join_names(labels_of(comparison.groups)))};
  Extent extent{0, 0};
  std::vector<PlotSeries> areas;
  for (size_t i = 0; i < comparison.groups.size(); ++i) {
    if (i == comparison.baseline) continue;
    const auto layers = distance_differences(comparison.groups[i], baseline);
    std::vector<PlacedStatistic> values;
    for (const auto& [layer, changed, gap] : layers) {
      values.push_back(
          {static_cast<double>(layer), gap.difference,
           fmt::format("layer {}: {} tokens{}", layer, minus_signs(spread_text(gap.difference, kDistanceDifference)),
                       changed ? ", other heads" : "")});
      extent.add(deviation_bar(gap.difference));
    }
    add_statistics(plot, i, comparison.groups.size(), values);
    areas.push_back(other_heads(i, layers));
  }
  plot.x = layer_axis(plot);
  plot.y = axis_over("difference in distance (tokens)", extent);
  plot.y.zero_line = true;
  add_other_heads(plot, std::move(areas));
  return plot;
}

std::vector<Plot> report_plots(const Comparison& comparison) {
  std::vector<Plot> plots = {train_plot(comparison), valid_plot(comparison)};
  if (comparison.groups.size() > 1) {
    plots.push_back(difference_plot(comparison));
    plots.push_back(forest_plot(comparison));
  }
  plots.push_back(share_plot(comparison));
  plots.push_back(pareto_plot(comparison));
  plots.push_back(distance_plot(comparison));
  plots.push_back(distance_difference_plot(comparison));
  std::erase_if(plots, [](const Plot& plot) { return plot.series.empty(); });
  return plots;
}

bool cuts_first_part(const Comparison& comparison, Losses losses) {
  const LossScale scale = loss_scale(comparison, losses);
  return !scale.empty() && scale.highest > scale.high;
}

bool shows_mean_training(const Comparison& comparison) {
  return count_runs(comparison) > kMostLineRuns && has_seeds(comparison);
}

}  // namespace prism
