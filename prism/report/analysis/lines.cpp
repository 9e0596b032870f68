#include "prism/report/analysis/lines.h"

#include <limits>

namespace prism {

double number_of(const Json& value) {
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

std::vector<double> numbers_of(const Json& list) {
  std::vector<double> values;
  for (const auto& value : list) values.push_back(number_of(value));
  return values;
}

}  // namespace prism
