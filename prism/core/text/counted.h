// A count with its noun, for sentences.
//
//   counted(1, "head")  // "1 head"
//   counted(4, "head")  // "4 heads"
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace prism {

/// The count, and the noun with an s unless the count is 1.
inline std::string counted(int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace prism
