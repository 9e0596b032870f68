// The texts that runs generated, on the page and in Markdown: for each prompt, the last sample at each temperature from
// the first run of each group that has any.
//
//   page += samples_section(comparison);
#pragma once

#include <string>

#include "prism/report/compare/compare.h"

namespace prism {

std::string samples_section(const Comparison& comparison);
std::string samples_markdown(const Comparison& comparison);

}  // namespace prism
