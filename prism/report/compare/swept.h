// The number that a sweep's grid varies, such as the learning rate, and where each arm ends for each of its values.
//
//   if (const auto swept = swept_field(comparison)) for (const auto& arm : swept->arms) ...
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "prism/report/compare/compare.h"

namespace prism {

struct SweptPoint {
  double value = 0;  ///< of the field
  Statistic loss;    ///< final value of the metric
};

struct SweptArm {
  std::string label;               ///< the arm's name; empty if the sweep has one arm without a name
  std::vector<SweptPoint> points;  ///< by value, ascending
};

struct SweptField {
  std::string name;            ///< as in the recipe, without what it belongs to: "learning_rate"
  std::vector<SweptArm> arms;  ///< in the comparison's order
};

/// Groups that prism sweep named ARM_FIELD=VALUE, where FIELD is in their recipes. std::nullopt unless they all vary
/// the same field and some arm was trained with three values. Groups with other names are left out, as are those that
/// were not trained as long as others (final_losses()).
std::optional<SweptField> swept_field(const Comparison& comparison);

}  // namespace prism
