// What several values are together: middle, mean, spread, and how surely the mean is known.
//
//   const Statistic difference = statistic({-0.011, -0.007, -0.013});     // paired by seed
//   const Interval interval = t_interval(difference, 0.95);
//   if (interval.excludes(0)) ...
#pragma once

#include <cstdint>
#include <vector>

namespace prism {

/// The mean of the middle two where there are two. @param values  at least one.
double median(std::vector<double> values);

/// Mean and sample standard deviation (divided by count - 1) of some values.
struct Statistic {
  double mean = 0;
  double deviation = 0;  ///< 0 below two values, where there is none
  int64_t count = 0;

  /// Of the mean: deviation / sqrt(count); 0 below two values, where there is none.
  double standard_error() const;
};

/// Two passes, so that nearly equal values keep their digits.
Statistic statistic(const std::vector<double>& values);

/// The mean of the values; NaN without any.
double mean_of(const std::vector<double>& values);

/// Mean of `a` minus mean of `b`, and how much that scatters. Paired: the statistic of the differences at equal
/// positions. Else the deviations add in squares, 0 where either side is a single value; the count is the smaller one,
/// and of nothing the statistic is that of nothing.
/// @param paired  only where there are as many of both.
Statistic mean_difference(const std::vector<double>& a, const std::vector<double>& b, bool paired);

struct Interval {
  double low = 0, high = 0;
  bool excludes(double value) const { return value < low || value > high; }
};

/// Where the mean of the population lies, if the values are independent and normal:
///
///   mean -+ t(1 - (1 - confidence) / 2; count - 1) deviation / sqrt(count)
///
/// From minus to plus infinity below two values. Source: Student 1908.
/// @param confidence  inside (0, 1).
Interval t_interval(const Statistic& values, double confidence);

}  // namespace prism
