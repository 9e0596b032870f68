// Numbers as the report writes them: the same digits in tables, plots and sentences.
//
//   text += spread_text(curve.back().loss);                    // 4.4012 ± 0.0031
//   text += minus_signs(interval_text(gap->loss.interval));    // −0.0448 to +0.0014
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "prism/core/statistics.h"

namespace prism {

/// What stands where there is no value.
inline constexpr const char* kNoValue = "–";

/// 8421376 -> "8,421,376".
std::string grouped(int64_t value);
std::string grouped(const std::optional<int64_t>& value);  ///< kNoValue where there is none
std::string grouped(double value);                         ///< rounded to a whole number

/// Four decimals: what losses in nats per token are compared by.
std::string loss_text(double loss);

/// -0.03 -> "-0.0300", 0.03 -> "+0.0300"; what rounds to nothing has no sign.
std::string difference_text(double difference);

/// "-0.0448 to +0.0014".
std::string interval_text(const Interval& interval);

/// "4.4012 ± 0.0031"; below two values there is no deviation.
std::string spread_text(const Statistic& loss);

/// "-0.0302 ± 0.0054", likewise.
std::string signed_spread_text(const Statistic& difference);

/// Every hyphen of a number as a minus sign, which has the width of a digit.
std::string minus_signs(const std::string& number);

}  // namespace prism
