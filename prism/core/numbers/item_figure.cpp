#include "prism/core/numbers/item_figure.h"

#include <cmath>
#include <numbers>
#include <numeric>

#include "prism/core/error.h"

namespace prism {
namespace {

constexpr int64_t kSamples = 10000;
constexpr uint64_t kSeed = 1234;

/// The figure of the items at these places.
double figure_at(const std::string& figure, const ItemScores& items, std::span<const int64_t> places) {
  double sum = 0, units = 0;
  for (const int64_t place : places) {
    sum += items.scores[static_cast<size_t>(place)];
    units += items.units[static_cast<size_t>(place)];
  }
  const double mean = sum / units;
  if (!is_less_better(figure)) return mean;
  return figure == "bits_per_byte" ? -mean / std::numbers::ln2 : std::exp(-mean);
}

std::vector<int64_t> all_places(const ItemScores& items) {
  PRISM_ASSERT(!items.scores.empty() && items.scores.size() == items.units.size(), "item_figure",
               "{} scores and {} units", items.scores.size(), items.units.size());
  std::vector<int64_t> places(items.scores.size());
  std::iota(places.begin(), places.end(), 0);
  return places;
}

}  // namespace

bool is_less_better(const std::string& figure) {
  return figure == "bits_per_byte" || figure.ends_with("perplexity");
}

double item_figure(const std::string& figure, const ItemScores& items) {
  return figure_at(figure, items, all_places(items));
}

double item_figure_error(const std::string& figure, const ItemScores& items) {
  if (!is_less_better(figure)) return statistic(items.scores).standard_error();
  if (items.scores.size() < 2) return 0;
  return bootstrap_error(
      std::ssize(items.scores), [&](std::span<const int64_t> places) { return figure_at(figure, items, places); },
      kSamples, kSeed);
}

PairedScore paired_figure(const std::string& figure, const ItemScores& a, const ItemScores& b) {
  PRISM_ASSERT(a.units == b.units, "item_figure", "other units of {}", figure);
  auto paired = paired_score(a.scores, b.scores);
  if (!is_less_better(figure)) return paired;
  const auto difference = [&](std::span<const int64_t> places) {
    return figure_at(figure, a, places) - figure_at(figure, b, places);
  };
  paired.difference = difference(all_places(a));
  paired.p = NAN;
  paired.standard_error = paired.items < 2 ? 0 : bootstrap_error(paired.items, difference, kSamples, kSeed);
  paired.interval = t_interval(paired.difference, paired.standard_error, paired.items, 0.95);
  return paired;
}

}  // namespace prism
