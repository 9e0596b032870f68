// Summary statistics: median, quantiles, mean, standard deviation, and confidence intervals for the mean.
//
//   const Statistic difference = statistic({-0.011, -0.007, -0.013});     // paired by seed
//   const Interval interval = t_interval(difference, 0.95);
//   if (interval.excludes(0)) ...
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace prism {

/// The median; the mean of the middle two for an even count. @param values  at least one.
double median(std::vector<double> values);

/// Quantiles of some values: the share `parts[i]` (0..1) of them is at most result[i], interpolated linearly between
/// the two values around position parts[i] (count - 1) in their order. @param values  at least one.
std::vector<double> quantiles(std::vector<double> values, const std::vector<double>& parts);

/// Mean and sample standard deviation (divided by count - 1) of some values.
struct Statistic {
  double mean = 0;
  double deviation = 0;  ///< 0 for fewer than two values, where it is undefined
  int64_t count = 0;

  /// Standard error of the mean, deviation / sqrt(count); 0 for fewer than two values, where it is undefined.
  double standard_error() const;
};

/// Uses two passes, so that nearly equal values lose no digits.
Statistic statistic(const std::vector<double>& values);

/// The mean of the values; NaN if there are none.
double mean_of(const std::vector<double>& values);
/// The same without the values that are not finite.
double mean_of_finite(std::vector<double> values);

/// The standard error of the mean of independent figures with these standard errors: the root of the sum of their
/// squares, divided by their number. @param standard_errors  at least one.
double error_of_mean(const std::vector<double>& standard_errors);

/// Adds scale x values to the sum, element by element. @param sum  empty: zeros; else as many elements as the values.
void add_scaled(std::vector<double>& sum, const std::vector<double>& values, double scale);

/// The mean of `a` minus the mean of `b`, with its standard deviation.
///
/// Paired: the statistic of the differences at equal positions.
/// Not paired: deviation = sqrt(deviation_a^2 + deviation_b^2), 0 if either side has a single value; count is the
/// smaller count. If either side is empty, the result is an empty statistic.
/// @param paired  requires as many values in `a` as in `b`.
Statistic mean_difference(const std::vector<double>& a, const std::vector<double>& b, bool paired);

struct Interval {
  double low = 0, high = 0;
  bool excludes(double value) const { return value < low || value > high; }
};

/// Confidence interval of the population mean, if the values are independent and normal:
///
///   mean -+ t(1 - (1 - confidence) / 2; count - 1) deviation / sqrt(count)
///
/// From minus to plus infinity for fewer than two values. Source: Student 1908.
/// @param confidence  inside (0, 1).
Interval t_interval(const Statistic& values, double confidence);
/// The same for a figure with this standard error, estimated from `count` independent values.
Interval t_interval(double figure, double standard_error, int64_t count, double confidence);

/// The two-sided p-value of `successes` of `trials` under a fair coin: twice the smaller tail, at most 1. With the
/// pairs in which one of two alone is right, this is McNemar's exact test.
double sign_test(int64_t successes, int64_t trials);

/// The mean score of a minus that of b on the same items.
struct PairedScore {
  double difference = 0, standard_error = 0;
  Interval interval;  ///< 95%, Student's t with items - 1 degrees of freedom
  int64_t items = 0;
  int64_t more_a = 0, more_b = 0;  ///< items on which a, or b, scores more
  double p = 1;  ///< the sign test over these items, two-sided; for scores of 0 and 1, McNemar's exact test
};

/// @throws InternalError for lists of different lengths, or without items.
PairedScore paired_score(const std::vector<double>& a, const std::vector<double>& b);
/// The same for a group: the mean of the differences of its parts, each counting alike, with the error of the mean of
/// independent ones and the sign test over all items. @param parts  at least one.
PairedScore paired_score(const std::vector<PairedScore>& parts);

/// The standard error of a figure of some items: its standard deviation over samples of them, drawn with replacement.
/// @param figure  computes the figure of the items at these places, each below `items`.
/// @param items   at least 1.
double bootstrap_error(int64_t items, const std::function<double(std::span<const int64_t>)>& figure, int64_t samples,
                       uint64_t seed);

}  // namespace prism
