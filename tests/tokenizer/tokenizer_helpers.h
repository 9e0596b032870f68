// Shared by the tokenizer's tests: fixtures, published tokenizers if the data are present, hostile random text.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "prism/core/files.h"
#include "prism/core/random.h"
#include "prism/tokenizer/tokenizer.h"

namespace prism {

inline std::string fixture_path(const std::string& name) {
  return std::string(PRISM_SOURCE_DIR) + "/tests/tokenizer/fixtures/" + name;
}

inline nlohmann::json fixture_json(const std::string& name) {
  return nlohmann::json::parse(read_file(fixture_path(name)));
}

inline std::vector<std::string> fixture_documents() {
  return fixture_json("documents.json").get<std::vector<std::string>>();
}

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

inline std::string utf8(uint32_t code) {
  const auto tail = [&](int shift) { return static_cast<char>(0x80 | ((code >> shift) & 0x3F)); };
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) return {static_cast<char>(0xC0 | (code >> 6)), tail(0)};
  if (code < 0x10000) return {static_cast<char>(0xE0 | (code >> 12)), tail(6), tail(0)};
  return {static_cast<char>(0xF0 | (code >> 18)), tail(12), tail(6), tail(0)};
}

/// A random code point that UTF-8 can hold.
inline uint32_t random_code_point(Random& random) {
  const auto code = static_cast<uint32_t>(random.below(0x110000 - 0x800));
  return code < 0xD800 ? code : code + 0x800;
}

}  // namespace prism
