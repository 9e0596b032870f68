#include "prism/core/statistics.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "prism/core/error.h"
#include "prism/core/random.h"

namespace prism {

double median(std::vector<double> values) {
  PRISM_ASSERT(!values.empty(), "median", "of nothing");
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

std::vector<double> quantiles(std::vector<double> values, const std::vector<double>& parts) {
  PRISM_ASSERT(!values.empty(), "quantiles", "of nothing");
  std::sort(values.begin(), values.end());
  std::vector<double> found;
  for (const double part : parts) {
    PRISM_ASSERT(part >= 0 && part <= 1, "quantiles", "part {}", part);
    const double position = part * static_cast<double>(values.size() - 1);
    const auto below = static_cast<size_t>(position), above = std::min(below + 1, values.size() - 1);
    found.push_back(std::lerp(values[below], values[above], position - static_cast<double>(below)));
  }
  return found;
}

double Statistic::standard_error() const {
  return count < 2 ? 0 : deviation / std::sqrt(static_cast<double>(count));
}

Statistic statistic(const std::vector<double>& values) {
  Statistic result;
  result.count = static_cast<int64_t>(values.size());
  if (values.empty()) return result;
  result.mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  if (values.size() < 2) return result;
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  result.deviation = std::sqrt(squares / static_cast<double>(values.size() - 1));
  return result;
}

double mean_of(const std::vector<double>& values) {
  return values.empty() ? std::numeric_limits<double>::quiet_NaN() : statistic(values).mean;
}

double mean_of_finite(std::vector<double> values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  return mean_of(values);
}

double error_of_mean(const std::vector<double>& standard_errors) {
  double squares = 0;
  for (const double error : standard_errors) squares += error * error;
  return std::sqrt(squares) / static_cast<double>(standard_errors.size());
}

void add_scaled(std::vector<double>& sum, const std::vector<double>& values, double scale) {
  if (sum.empty()) sum.resize(values.size());
  PRISM_ASSERT(sum.size() == values.size(), "statistics", "{} and {} values", sum.size(), values.size());
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += scale * values[i];
}

Statistic mean_difference(const std::vector<double>& a, const std::vector<double>& b, bool paired) {
  if (!paired) {
    const Statistic left = statistic(a), right = statistic(b);
    const int64_t count = std::min(left.count, right.count);
    if (count == 0) return {};
    return {left.mean - right.mean, count > 1 ? std::hypot(left.deviation, right.deviation) : 0.0, count};
  }
  PRISM_ASSERT(a.size() == b.size(), "mean_difference", "{} values paired with {}", a.size(), b.size());
  std::vector<double> differences(a.size());
  std::transform(a.begin(), a.end(), b.begin(), differences.begin(), std::minus<>());
  return statistic(differences);
}

Interval t_interval(const Statistic& values, double confidence) {
  PRISM_ASSERT(confidence > 0 && confidence < 1, "t_interval", "confidence {}", confidence);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (values.count < 2) return {-kInfinity, kInfinity};
  const boost::math::students_t distribution(static_cast<double>(values.count - 1));
  const double half = boost::math::quantile(distribution, (1 + confidence) / 2) * values.standard_error();
  return {values.mean - half, values.mean + half};
}

Interval t_interval(double figure, double standard_error, int64_t count, double confidence) {
  const double deviation = standard_error * std::sqrt(static_cast<double>(count));
  return t_interval({.mean = figure, .deviation = deviation, .count = count}, confidence);
}

double sign_test(int64_t successes, int64_t trials) {
  const int64_t smaller = std::min(successes, trials - successes);
  const auto log_factorial = [](int64_t n) { return std::lgamma(static_cast<double>(n) + 1); };
  double tail = 0;
  for (int64_t i = 0; i <= smaller; ++i)
    tail += std::exp(log_factorial(trials) - log_factorial(i) - log_factorial(trials - i) -
                     static_cast<double>(trials) * std::log(2.0));
  return std::min(1.0, 2 * tail);
}

double bootstrap_error(int64_t items, const std::function<double(std::span<const int64_t>)>& figure, int64_t samples,
                       uint64_t seed) {
  PRISM_ASSERT(items >= 1 && samples >= 2, "bootstrap", "{} items, {} samples", items, samples);
  std::vector<double> figures;
  std::vector<int64_t> drawn(static_cast<size_t>(items));
  Random random(seed);
  for (int64_t i = 0; i < samples; ++i) {
    for (auto& each : drawn) each = static_cast<int64_t>(random.below(static_cast<uint64_t>(items)));
    figures.push_back(figure(drawn));
  }
  return statistic(figures).deviation;
}

PairedScore paired_score(const std::vector<double>& a, const std::vector<double>& b) {
  PRISM_ASSERT(a.size() == b.size() && !a.empty(), "paired_score", "{} and {} items", a.size(), b.size());
  const auto found = mean_difference(a, b, /*paired=*/true);
  PairedScore result{.difference = found.mean,
                     .standard_error = found.standard_error(),
                     .interval = t_interval(found, 0.95),
                     .items = found.count};
  for (size_t i = 0; i < a.size(); ++i) {
    result.more_a += a[i] > b[i];
    result.more_b += b[i] > a[i];
  }
  result.p = sign_test(result.more_a, result.more_a + result.more_b);
  return result;
}

PairedScore paired_score(const std::vector<PairedScore>& parts) {
  PairedScore result;
  std::vector<double> differences, errors;
  for (const auto& each : parts) {
    differences.push_back(each.difference);
    errors.push_back(each.standard_error);
    result.items += each.items;
    result.more_a += each.more_a;
    result.more_b += each.more_b;
  }
  result.difference = mean_of(differences);
  result.standard_error = error_of_mean(errors);
  result.interval = t_interval(result.difference, result.standard_error, result.items, 0.95);
  result.p = sign_test(result.more_a, result.more_a + result.more_b);
  return result;
}

}  // namespace prism
