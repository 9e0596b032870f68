// Formats numbers for reports. Tables, plots and sentences show the same digits.
//
//   text += spread_text(curve.back().loss, kLossNumber);                     // 4.4012 ± 0.0031
//   text += minus_signs(interval_text(gap->loss.interval, kLossDifference)); // −0.0448 to +0.0014
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "prism/core/statistics.h"

namespace prism {

/// The text for a missing value.
inline constexpr const char* kNoValue = "–";

struct NumberStyle {
  int decimals = 0;
  bool sign = false;  ///< writes + or -, but no sign if the value rounds to zero
};

inline constexpr NumberStyle kWholeNumber = {0, false};                              ///< tokens, tokens/s, seconds
inline constexpr NumberStyle kLossNumber = {4, false}, kLossDifference = {4, true};  ///< nats per token
inline constexpr NumberStyle kDistanceNumber = {1, false}, kDistanceDifference = {1, true};  ///< tokens

/// 8421376 -> "8,421,376".
std::string grouped(int64_t value);
std::string grouped(const std::optional<int64_t>& value);  ///< kNoValue for std::nullopt

/// -0.03 as kLossDifference -> "-0.0300"; 3469.2 as kWholeNumber -> "3,469". kNoValue if not finite.
std::string number_text(double value, NumberStyle style);
/// The values, separated by spaces; kNoValue if there are none.
std::string numbers_text(const std::vector<double>& values, NumberStyle style);

/// "-0.0302 ± 0.0054"; without deviation for fewer than two values, kNoValue for none.
std::string spread_text(const Statistic& value, NumberStyle style);

/// "-0.0448 to +0.0014".
std::string interval_text(const Interval& interval, NumberStyle style);

/// Replaces every hyphen of a number with a minus sign, which is as wide as a digit.
std::string minus_signs(const std::string& number);

}  // namespace prism
