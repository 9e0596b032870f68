// Tests of published tokenizers. Their files are too large to commit and are found through PRISM_DATA.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "prism/tokenizer/tokenizer.h"
#include "tests/tokenizer/tokenizer_helpers.h"

namespace prism {
namespace {

using nlohmann::json;

struct Case {
  std::string text;
  std::vector<int32_t> ids;
};

/// The 47 inputs of llama.cpp's vocabulary tests and the ids they must give.
std::vector<Case> read_cases(const std::string& path) {
  const std::string inputs = read_file(path + ".inp");
  std::istringstream outputs(read_file(path + ".out"));
  const std::string separator = "\n__ggml_vocab_test__\n";
  std::vector<Case> cases;
  std::string line;
  for (size_t at = 0; at != std::string::npos;) {
    if (!std::getline(outputs, line)) line.clear();  // the last input is empty and has no line of ids
    const size_t end = inputs.find(separator, at);
    Case row;
    row.text = inputs.substr(at, end == std::string::npos ? end : end - at);
    std::istringstream ids(line);
    for (int32_t id = 0; ids >> id;) row.ids.push_back(id);
    cases.push_back(std::move(row));
    at = end == std::string::npos ? end : end + separator.size();
  }
  return cases;
}

class PublishedTokenizer : public testing::Test {
 protected:
  void SetUp() override {
    if (!data_folder()) GTEST_SKIP() << "set PRISM_DATA to the folder that holds tokenizers/";
    folder_ = *data_folder() + "/tokenizers/";
  }
  std::string read(const std::string& name) const { return read_xz(folder_ + name + "/tokenizer.json.xz"); }
  void expect_cases(const Tokenizer& tokenizer, const std::string& name) const {
    const auto cases = read_cases(folder_ + "ggml-vocab/ggml-vocab-" + name + ".gguf");
    ASSERT_EQ(cases.size(), 47u);
    for (const auto& row : cases) {
      EXPECT_EQ(tokenizer.encode(row.text), row.ids) << row.text;
      EXPECT_EQ(tokenizer.decode(row.ids), row.text);
    }
  }

  std::string folder_;
};

TEST_F(PublishedTokenizer, Gpt2GivesTheExactIdsOfAllInputs) {
  const Tokenizer tokenizer = Tokenizer::from_json(read("gpt2"), "gpt2");
  EXPECT_EQ(tokenizer.vocab_size(), 50257);
  EXPECT_EQ(tokenizer.merge_count(), 50000);
  EXPECT_EQ(tokenizer.end_of_text(), 50256);
  expect_cases(tokenizer, "gpt-2");
}

TEST_F(PublishedTokenizer, Llama3GivesTheExactIdsOfAllInputs) {
  const Tokenizer tokenizer = Tokenizer::from_json(read("llama3"), "llama3");
  EXPECT_EQ(tokenizer.vocab_size(), 128256);
  EXPECT_EQ(tokenizer.end_of_text(), 128001);
  expect_cases(tokenizer, "llama-bpe");
}

TEST_F(PublishedTokenizer, Qwen2GivesTheExactIdsOfAllInputs) {
  const Tokenizer tokenizer = Tokenizer::from_json(read("qwen2.5"), "qwen2.5");
  EXPECT_EQ(tokenizer.vocab_size(), 151665);
  expect_cases(tokenizer, "qwen2");
}

TEST_F(PublishedTokenizer, Llama2GivesTheExactIdsOfAllInputsFromEitherFile) {
  const Tokenizer tokenizer = Tokenizer::load(folder_ + "llama2/tokenizer.model");
  EXPECT_EQ(tokenizer.vocab_size(), 32000);
  EXPECT_EQ(tokenizer.end_of_text(), 2);
  EXPECT_TRUE(tokenizer.strips_first_space());
  expect_cases(tokenizer, "llama-spm");
  const Tokenizer same = Tokenizer::load(*data_folder() + "/tinyllamas/stories15M/tokenizer.bin");
  EXPECT_EQ(same.fingerprint(), tokenizer.fingerprint());
}

TEST_F(PublishedTokenizer, Gpt2TokensEncodeToThemselvesAndDecodeToTheirBytes) {
  const Tokenizer tokenizer = Tokenizer::from_json(read("gpt2"), "gpt2");
  int64_t themselves = 0;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    const std::string bytes(tokenizer.bytes(id));
    const auto ids = tokenizer.encode(bytes);
    EXPECT_EQ(tokenizer.decode(ids), bytes);
    themselves += ids == std::vector{id};
  }
  // The others end inside a character or are runs that the pattern splits.
  EXPECT_GT(themselves, 49000);
}

}  // namespace
}  // namespace prism
