// Shared by the tests of commands: a finished run, and a check of error messages.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "prism/core/fields.h"
#include "tests/cli/process.h"
#include "tests/core/message_of.h"

namespace prism {

inline Outcome run(const std::vector<std::string>& words, const std::string& input = "") {
  return run_prism(words, Workshop::folder(), input);
}

/// The folder of a finished run, which is trained once.
inline const std::string& trained() {
  static const std::string name = [] {
    const auto outcome = run({"train", "--recipe", "recipe.json", "--out", "trained", "--threads", "1"});
    if (outcome.status != 0) throw std::runtime_error(outcome.err);
    return std::string("trained");
  }();
  return name;
}

inline std::filesystem::path last_checkpoint() {
  return Workshop::folder() / trained() / "checkpoints/step-00000016";
}

/// The last line of standard error; progress and notes may precede it.
inline std::string last_line(const std::string& text) {
  const size_t end = text.find_last_not_of('\n');
  if (end == std::string::npos) return "";
  const size_t start = text.find_last_of("\r\n", end);
  return text.substr(start + 1, end - start);
}

/// True for "[operation] Any words; and a way out.": one sentence, which ends with the line.
inline bool is_one_sentence(const std::string& line) {
  if (!std::regex_match(line, std::regex(R"(\[[^\]]+\] .*[.?])"))) return false;
  return !std::regex_search(line, std::regex(R"re([a-z0-9)"][.?!] [A-Z])re"));
}

/// Expects an error of one sentence, "[operation] ...", with all `parts` in it, and no stack trace.
inline void expect_sentence(const Outcome& outcome, int status, const std::vector<std::string>& parts) {
  EXPECT_EQ(outcome.status, status) << outcome.err;
  EXPECT_TRUE(is_one_sentence(last_line(outcome.err))) << outcome.err;
  EXPECT_EQ(outcome.err.find("frame #"), std::string::npos) << outcome.err;
  if (status == 2) {
    EXPECT_TRUE(has_way_out(outcome.err)) << "no way out: " << outcome.err;
  }
  for (const auto& part : parts)
    EXPECT_NE(outcome.err.find(part), std::string::npos) << "no \"" << part << "\" in: " << outcome.err;
}

/// Header and data of a safetensors file, read as a program in another language would.
inline std::pair<Json, std::string> read_safetensors(const std::string& file) {
  const std::string whole = read_text(Workshop::folder() / file);
  uint64_t length = 0;
  std::memcpy(&length, whole.data(), sizeof length);
  return {Json::parse(whole.substr(sizeof length, length)), whole.substr(sizeof length + length)};
}

/// The JSON lines that a command printed.
inline std::vector<Json> lines_of(const Outcome& outcome) {
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  std::vector<Json> lines;
  std::istringstream stream(outcome.out);
  for (std::string line; std::getline(stream, line);) lines.push_back(Json::parse(line));
  return lines;
}

}  // namespace prism
