#include "prism/training/fixed_parameters.h"

#include <fnmatch.h>

#include <algorithm>

#include "prism/core/error.h"
#include "prism/core/text/printable.h"

namespace prism {

bool is_fixed(const WeightEntry& entry) {
  return entry.weight.is_fixed(0, entry.weight.shape()[0]);
}

void fix_parameters(const std::vector<WeightEntry>& weights, const std::vector<std::string>& patterns) {
  for (const auto& pattern : patterns) {
    bool found = false;
    for (const auto& entry : weights)
      for (const auto& tensor : entry.tensors) {
        if (::fnmatch(pattern.c_str(), tensor.name.c_str(), 0) != 0) continue;
        entry.weight.fix_rows(tensor.first_row, tensor.rows);
        found = true;
      }
    PRISM_CHECK(
        found, "train",
        "train.fixed: expected patterns that match names of parameters, such as {}; found \"{}\", which matches "
        "none; correct it (layers that share a parameter have it under the name of the first one), or leave it "
        "out.",
        weights.back().tensors.back().name, short_line(pattern, 60));
  }
  PRISM_CHECK(
      !std::all_of(weights.begin(), weights.end(), is_fixed), "train",
      "train.fixed: expected patterns that leave a parameter to train; found that they match all; leave one out.");
}

}  // namespace prism
