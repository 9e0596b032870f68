#include "prism/report/number_text.h"

#include <fmt/format.h>

#include <cmath>

namespace prism {

std::string grouped(int64_t value) {
  std::string digits = std::to_string(value);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > (value < 0 ? 1 : 0); at -= 3) {
    digits.insert(static_cast<size_t>(at), ",");
  }
  return digits;
}

std::string grouped(const std::optional<int64_t>& value) {
  return value ? grouped(*value) : kNoValue;
}

std::string grouped(double value) {
  return grouped(static_cast<int64_t>(std::llround(value)));
}

std::string loss_text(double loss) {
  return fmt::format("{:.4f}", loss);
}

std::string difference_text(double difference) {
  const std::string text = fmt::format("{:+.4f}", difference);
  return text == "-0.0000" || text == "+0.0000" ? "0.0000" : text;
}

std::string interval_text(const Interval& interval) {
  return fmt::format("{} to {}", difference_text(interval.low), difference_text(interval.high));
}

std::string spread_text(const Statistic& loss) {
  return loss_text(loss.mean) + (loss.count > 1 ? " ± " + loss_text(loss.deviation) : "");
}

std::string signed_spread_text(const Statistic& difference) {
  return difference_text(difference.mean) + (difference.count > 1 ? " ± " + loss_text(difference.deviation) : "");
}

std::string minus_signs(const std::string& number) {
  std::string result;
  for (const char c : number) result += c == '-' ? std::string("−") : std::string(1, c);
  return result;
}

}  // namespace prism
