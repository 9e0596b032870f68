#include "prism/report/draw/number_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace prism {
namespace {

/// Commas between the thousands of a number's whole part.
std::string with_commas(std::string digits) {
  const size_t start = digits.find_first_of("0123456789");
  if (start == std::string::npos) return digits;  // inf, nan
  const auto first = static_cast<std::ptrdiff_t>(start);
  const auto end = static_cast<std::ptrdiff_t>(std::min(digits.find('.'), digits.size()));
  for (auto at = end - 3; at > first; at -= 3) digits.insert(static_cast<size_t>(at), ",");
  return digits;
}

}  // namespace

std::string grouped(int64_t value) {
  return with_commas(std::to_string(value));
}

std::string grouped(const std::optional<int64_t>& value) {
  return value ? grouped(*value) : kNoValue;
}

std::string number_text(double value, NumberStyle style) {
  constexpr double kTooLong = 1e15;
  if (!std::isfinite(value)) return kNoValue;
  if (std::abs(value) >= kTooLong) return fmt::format("{:.4g}", value);
  std::string text = fmt::format("{:+.{}f}", value, style.decimals);
  const bool is_zero = text.find_first_not_of("+-0.") == std::string::npos;
  if (is_zero || (!style.sign && text[0] == '+')) text.erase(0, 1);
  return with_commas(text);
}

std::string numbers_text(const std::vector<double>& values, NumberStyle style) {
  std::string text;
  for (const double value : values) text += (text.empty() ? "" : "  ") + number_text(value, style);
  return values.empty() ? kNoValue : text;
}

std::string spread_text(const Statistic& value, NumberStyle style) {
  if (value.count == 0) return kNoValue;
  const std::string mean = number_text(value.mean, style);
  return value.count > 1 ? mean + " ± " + number_text(value.deviation, {style.decimals}) : mean;
}

std::string interval_text(const Interval& interval, NumberStyle style) {
  return number_text(interval.low, style) + " to " + number_text(interval.high, style);
}

std::string minus_signs(const std::string& number) {
  std::string result;
  for (const char c : number) result += c == '-' ? std::string("−") : std::string(1, c);
  return result;
}

}  // namespace prism
