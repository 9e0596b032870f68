// Large data of tests, which is not committed: its folder, and its compressed files.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>

namespace prism {

/// The folder of large data, if this machine has one.
inline std::optional<std::string> data_folder() {
  const char* folder = std::getenv("PRISM_DATA");
  return folder == nullptr || *folder == '\0' ? std::nullopt : std::optional<std::string>(folder);
}

/// The content of an .xz file.
inline std::string read_xz(const std::string& path) {
  FILE* pipe = popen(("xz -dc '" + path + "'").c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("xz did not start");
  std::string content(1 << 20, '\0');
  size_t size = 0;
  while (const size_t got = std::fread(content.data() + size, 1, content.size() - size, pipe)) {
    size += got;
    if (size == content.size()) content.resize(2 * size);
  }
  if (pclose(pipe) != 0) throw std::runtime_error("xz could not read " + path);
  content.resize(size);
  return content;
}

}  // namespace prism
