// Numbers as the report writes them: the same digits in tables, plots and sentences.
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

/// What stands where there is no value.
inline constexpr const char* kNoValue = "–";

struct NumberStyle {
  int decimals = 0;
  bool sign = false;  ///< + or -, but none for what rounds to nothing
};

inline constexpr NumberStyle kWholeNumber = {0, false};                              ///< tokens, tokens/s, seconds
inline constexpr NumberStyle kLossNumber = {4, false}, kLossDifference = {4, true};  ///< nats per token
inline constexpr NumberStyle kDistanceNumber = {1, false}, kDistanceDifference = {1, true};  ///< tokens

/// 8421376 -> "8,421,376".
std::string grouped(int64_t value);
std::string grouped(const std::optional<int64_t>& value);  ///< kNoValue where there is none

/// -0.03 as kLossDifference -> "-0.0300"; 3469.2 as kWholeNumber -> "3,469". kNoValue: of what is not finite.
std::string number_text(double value, NumberStyle style);
/// Side by side. kNoValue: of none.
std::string numbers_text(const std::vector<double>& values, NumberStyle style);

/// "-0.0302 ± 0.0054"; below two values there is no deviation. kNoValue: of nothing.
std::string spread_text(const Statistic& value, NumberStyle style);

/// "-0.0448 to +0.0014".
std::string interval_text(const Interval& interval, NumberStyle style);

/// Every hyphen of a number as a minus sign, which has the width of a digit.
std::string minus_signs(const std::string& number);

}  // namespace prism
