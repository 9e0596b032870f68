// Whether a text holds another.
#pragma once

#include <string>

namespace prism {

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace prism
