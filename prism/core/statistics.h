// What several values are together.
#pragma once

#include <algorithm>
#include <vector>

namespace prism {

/// The mean of the middle two where there are two. @param values  at least one.
inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

}  // namespace prism
