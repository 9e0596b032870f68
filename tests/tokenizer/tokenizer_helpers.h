// Shared by the tokenizer's tests: fixtures, published tokenizers if the data are present, hostile random text.
#pragma once

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "prism/core/files.h"
#include "prism/core/random.h"
#include "prism/tokenizer/tokenizer.h"
#include "tests/core/large_data.h"

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
