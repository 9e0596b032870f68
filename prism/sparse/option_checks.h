// Checks of selectors' options.
#pragma once

#include <cstdint>

#include "prism/core/error.h"

namespace prism {

/// @throws InputError naming the selector and the option unless 0 < share <= 1.
inline void check_share(const char* selector, const char* name, double share) {
  PRISM_CHECK(share > 0 && share <= 1, selector, "{}: expected a share within (0, 1]; found {}; change it.", name,
              share);
}

/// @throws InputError naming the selector and the option unless count >= 0.
inline void check_count(const char* selector, const char* name, int64_t count) {
  PRISM_CHECK(count >= 0, selector, "{}: expected at least 0; found {}; raise it.", name, count);
}

}  // namespace prism
