// Reads the fields of lines of `prism analyse ... --json`.
//
//   const double entropy = number_of(line.at("entropy"));
#pragma once

#include <vector>

#include "prism/core/fields.h"

namespace prism {

/// A number; null, which stands for a value that JSON cannot represent, becomes NaN. @throws Json::exception for
/// others.
double number_of(const Json& value);

/// The numbers of a list. @throws Json::exception if one is none.
std::vector<double> numbers_of(const Json& list);

}  // namespace prism
