// The inputs of llama.cpp's vocabulary tests and the ids they must give. Source: github.com/ggml-org/llama.cpp,
// models/.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "prism/core/files.h"
#include "prism/tokenizer/tokenizer.h"

namespace prism {

struct PublishedCase {
  std::string text;
  std::vector<int32_t> ids;
};

/// @param path  of both files, without .inp and .out.
inline std::vector<PublishedCase> read_cases(const std::string& path) {
  const std::string inputs = read_file(path + ".inp");
  std::istringstream outputs(read_file(path + ".out"));
  const std::string separator = "\n__ggml_vocab_test__\n";
  std::vector<PublishedCase> cases;
  std::string line;
  for (size_t at = 0; at != std::string::npos;) {
    if (!std::getline(outputs, line)) line.clear();  // the last input is empty and has no line of ids
    const size_t end = inputs.find(separator, at);
    PublishedCase row;
    row.text = inputs.substr(at, end == std::string::npos ? end : end - at);
    std::istringstream ids(line);
    for (int32_t id = 0; ids >> id;) row.ids.push_back(id);
    cases.push_back(std::move(row));
    at = end == std::string::npos ? end : end + separator.size();
  }
  return cases;
}

/// @param folder  the folder tokenizers/ of the large data.
inline void expect_published_cases(const Tokenizer& tokenizer, const std::string& folder, const std::string& name) {
  const auto cases = read_cases(folder + "ggml-vocab/ggml-vocab-" + name + ".gguf");
  ASSERT_EQ(cases.size(), 47u);
  for (const auto& row : cases) {
    EXPECT_EQ(tokenizer.encode(row.text), row.ids) << row.text;
    EXPECT_EQ(tokenizer.decode(row.ids), row.text);
  }
}

}  // namespace prism
