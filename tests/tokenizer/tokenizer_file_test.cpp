#include "prism/tokenizer/tokenizer_file.h"

#include <gtest/gtest.h>

#include "prism/core/error.h"
#include "tests/tokenizer/tokenizer_helpers.h"

namespace prism {
namespace {

using nlohmann::json;

/// Expects an error that names the file and contains `words`.
void expect_refused(const std::string& text, const std::string& words) {
  try {
    Tokenizer::from_json(text, "some/tokenizer.json");
    FAIL() << "accepted; expected: " << words;
  } catch (const InputError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("some/tokenizer.json"), std::string::npos) << message;
    EXPECT_NE(message.find(words), std::string::npos) << message;
  }
}

void expect_refused_with(const std::string& pointer, const json& value, const std::string& words) {
  json file = fixture_json("gpt2.json");
  file[json::json_pointer(pointer)] = value;
  expect_refused(file.dump(), words);
}

void expect_refused_without(const std::string& pointer, const std::string& words) {
  const json::json_pointer place(pointer);
  json file = fixture_json("gpt2.json");
  file[place.parent_pointer()].erase(place.back());
  expect_refused(file.dump(), words);
}

TEST(TokenizerFile, RefusesWhatIsNoTokenizer) {
  expect_refused("", "expected JSON");
  expect_refused("{\"model\": ", "ends too early");
  expect_refused("[1, 2]", "expected an object");
  expect_refused(R"({"model": {"vocab": {"a": 1, "a": 2}}})", "\"a\" twice");
  expect_refused("{\"a\": 1}", "expected a member \"model\"");
  expect_refused("{\"model\": \"\xFF\"}", "expected JSON");
  expect_refused_without("/model/vocab", "expected a member \"vocab\"");
  expect_refused_without("/model/merges", "expected a member \"merges\"");
  expect_refused_with("/model/vocab", json::array(), "expected \"vocab\" to be of type object");
  expect_refused_with("/model/merges", json::object(), "expected \"merges\" to be of type array");
  const std::string whole = fixture_json("gpt2.json").dump();
  expect_refused(whole.substr(0, whole.size() / 2), "expected JSON");
}

TEST(TokenizerFile, RefusesKindsItDoesNotKnowByName) {
  expect_refused_with("/model/type", "Unigram", "\"Unigram\"");
  expect_refused_with("/normalizer", {{"type", "NFKC"}}, "\"NFKC\"");
  expect_refused_with("/decoder", {{"type", "Metaspace"}}, "\"Metaspace\"");
  expect_refused_without("/decoder", "expected a decoder of type \"ByteLevel\"");
  expect_refused_with("/pre_tokenizer", {{"type", "Metaspace"}}, "Metaspace");
  expect_refused_with("/pre_tokenizer", nullptr, "null");
  expect_refused_with("/pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", json::array()}}, "ends in ByteLevel");
  expect_refused_with("/pre_tokenizer", {{"type", "Digits"}, {"individual_digits", true}}, "ends in ByteLevel");
  expect_refused_with("/pre_tokenizer/add_prefix_space", true, "add_prefix_space");
}

TEST(TokenizerFile, RefusesSplitsItCannotFollow) {
  const auto sequence = [](const json& split) {
    const json byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
    return json{{"type", "Sequence"}, {"pretokenizers", {split, byte_level}}};
  };
  const json good = {{"type", "Split"}, {"pattern", {{"Regex", "a+"}}}, {"behavior", "Isolated"}, {"invert", false}};
  json split = good;
  split["behavior"] = "Removed";
  expect_refused_with("/pre_tokenizer", sequence(split), "\"Removed\"");
  split = good;
  split["invert"] = true;
  expect_refused_with("/pre_tokenizer", sequence(split), "invert true");
  split = good;
  split["pattern"] = {{"Glob", "*"}};
  expect_refused_with("/pre_tokenizer", sequence(split), "{\"Glob\":\"*\"}");
  split = good;
  split["pattern"] = {{"Regex", "(a"}};
  expect_refused_with("/pre_tokenizer", sequence(split), "missing closing parenthesis");
  split = good;
  split["pattern"] = {{"String", ""}};
  expect_refused_with("/pre_tokenizer", sequence(split), "whose pattern is not empty; found \"\"");
  json late = sequence(good);
  std::swap(late["pretokenizers"][0], late["pretokenizers"][1]);
  expect_refused_with("/pre_tokenizer", late, "expected ByteLevel to be the last");
}

TEST(TokenizerFile, RefusesModelOptionsThatChangeIds) {
  expect_refused_with("/model/dropout", 0.1, "dropout");
  expect_refused_with("/model/continuing_subword_prefix", "##", "continuing_subword_prefix");
  expect_refused_with("/model/end_of_word_suffix", "</w>", "end_of_word_suffix");
}

TEST(TokenizerFile, RefusesWhatChangesTheIdsOfAWholeText) {
  expect_refused_with("/truncation", {{"max_length", 8}}, "expected \"truncation\" to be null");
  expect_refused_with("/padding", {{"pad_id", 0}}, "expected \"padding\" to be null");
  const json byte_level = {{"type", "ByteLevel"}, {"trim_offsets", false}}, added = {{"type", "BertProcessing"}};
  const json opening = {{"type", "TemplateProcessing"}, {"single", json::array()}};
  expect_refused_with("/post_processor", added, "BertProcessing");
  expect_refused_with("/post_processor", {{"type", "Sequence"}, {"processors", {byte_level, added}}}, "set it to null");
  json file = fixture_json("gpt2.json");
  const auto fingerprint = Tokenizer::from_json(file.dump(), "test").fingerprint();
  for (const json& harmless :
       {json(), byte_level, opening, json{{"type", "Sequence"}, {"processors", {byte_level, opening}}}}) {
    file["post_processor"] = harmless;
    EXPECT_EQ(Tokenizer::from_json(file.dump(), "test").fingerprint(), fingerprint);
  }
}

/// As the vocabulary of SmolLM2, which has no token for some control characters; `tokenizers` leaves them out, too.
TEST(TokenizerFile, MayLackTokensOfBytesThatAreNotPrintable) {
  json file = fixture_json("gpt2.json");
  const auto whole = Tokenizer::from_json(file.dump(), "test");
  file["model"]["vocab"].erase("Ą");  // byte 0x04
  const auto lacking = Tokenizer::from_json(file.dump(), "test");
  EXPECT_EQ(lacking.encode("a b"), whole.encode("a b"));
  EXPECT_EQ(lacking.decode(lacking.encode("a\x04 b")), "a b");
  EXPECT_EQ(whole.decode(whole.encode("a\x04 b")), "a\x04 b");
}

TEST(TokenizerFile, RefusesBrokenVocabularies) {
  expect_refused_with("/model/vocab/", 6, "found an empty one");
  expect_refused_with("/added_tokens/1/content", "", "found an empty one");
  expect_refused_without("/model/vocab/`", "found none for byte 0x60");
  expect_refused_with("/model/vocab/Ġ", -1, "found -1");
  expect_refused_with("/model/vocab/Ġ", 2.5, "found 2.5");
  expect_refused_with("/model/vocab/Ġ", "7", "found \"7\"");
  expect_refused_with("/model/vocab/Ġ", 4000000000, "found 4000000000");
  expect_refused_with("/model/vocab/Ġ", 3, "a unique id");
}

TEST(TokenizerFile, RefusesBrokenMerges) {
  expect_refused_with("/model/merges/2", "ab", "merge 2");
  expect_refused_with("/model/merges/2", "a b c", "merge 2");
  expect_refused_with("/model/merges/2", {"a", "b", "c"}, "merge 2");
  expect_refused_with("/model/merges/2", 7, "merge 2");
  expect_refused_with("/model/merges/2", {"Q", "Q"}, "merge 2 (Q Q)");
  expect_refused_with("/model/merges/2", {"灯", "a"}, "merge 2");
}

TEST(TokenizerFile, RefusesBrokenAddedTokens) {
  expect_refused_with("/added_tokens", 7, "\"added_tokens\"");
  expect_refused_with("/added_tokens/1", "x", "expected every added token to be an object");
  expect_refused_without("/added_tokens/1/content", "\"content\"");
  expect_refused_without("/added_tokens/1/id", "<|pad|>");
  expect_refused_with("/added_tokens/1/special", "yes", "\"special\"");
  expect_refused_with("/added_tokens/1/id", 5, "a unique id");  // taken by a byte
  expect_refused_with("/added_tokens/0/id", 999, "the id it has in the vocabulary, 0; found 999");
  expect_refused_with("/added_tokens/2/content", "<|pad|>", "once");
}

TEST(TokenizerFile, AcceptsOlderFilesWithoutWhatHasADefault) {
  json file = fixture_json("gpt2.json");
  const auto fingerprint = Tokenizer::from_json(file.dump(), "test").fingerprint();
  for (const char* name : {"version", "truncation", "padding", "normalizer", "post_processor"}) file.erase(name);
  for (const char* name : {"type", "dropout", "unk_token", "ignore_merges"}) file["model"].erase(name);
  EXPECT_EQ(Tokenizer::from_json(file.dump(), "test").fingerprint(), fingerprint);
  file["model"]["continuing_subword_prefix"] = "";  // as in GPT-2's own file
  file["model"]["dropout"] = 0.0;
  EXPECT_EQ(Tokenizer::from_json(file.dump(), "test").fingerprint(), fingerprint);
}

TEST(TokenizerFile, WritesWhatItRead) {
  for (const char* name : {"gpt2.json", "llama3.json", "digits.json"}) {
    const TokenizerFile file = parse_tokenizer_file(read_file(fixture_path(name)), name);
    const std::string written = write_tokenizer_file(file);
    EXPECT_EQ(write_tokenizer_file(parse_tokenizer_file(written, "written")), written);
    json expected = fixture_json(name);
    for (auto& merge : expected["model"]["merges"])
      merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
    EXPECT_EQ(json::parse(written), expected) << name;
  }
}

}  // namespace
}  // namespace prism
