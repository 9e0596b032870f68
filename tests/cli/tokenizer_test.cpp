// Runs prism tokenizer as a user does: results go to standard output, and every wrong input gets one sentence.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/process.h"
#include "tests/core/message_of.h"

namespace prism {
namespace {

using nlohmann::json;

class TokenizerCommand : public testing::Test {
 protected:
  void SetUp() override {
    std::string text;
    for (int i = 0; i < 40; ++i) text += "The keeper lit the lamp; the lamp was bright.\n";
    write_text(path("text.txt"), text);
    ASSERT_EQ(run({"train", "text.txt", "--vocab-size", "275", "--out", "made"}).status, 0);
  }
  std::filesystem::path path(const std::string& name) const { return folder_.path() / name; }
  Outcome run(std::vector<std::string> words, const std::string& input = "") const {
    words.insert(words.begin(), "tokenizer");
    return run_prism(words, folder_.path(), input);
  }
  /// Expects one sentence with all `parts` in it, nothing on standard output, and the given status.
  void expect_refused(const Outcome& outcome, int status, const std::vector<std::string>& parts) const {
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err.front(), '[') << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    for (const auto& part : parts)
      EXPECT_NE(outcome.err.find(part), std::string::npos) << "no \"" << part << "\" in: " << outcome.err;
  }

  TemporaryFolder folder_;
};

TEST_F(TokenizerCommand, TrainsIntoAFolderOrAFileThatIsNamed) {
  EXPECT_TRUE(std::filesystem::exists(path("made/tokenizer.json")));
  const auto outcome =
      run({"train", "text.txt", "--vocab-size", "270", "--out", "deep/mine.json", "--special", "<a>", "--special",
           "<b>", "--pattern", "llama3", "--min-frequency", "0", "--threads", "2", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const json result = json::parse(outcome.out);
  EXPECT_EQ(result["path"], "deep/mine.json");
  EXPECT_EQ(result["vocab_size"], 270);
  const json info = json::parse(run({"info", "deep/mine.json", "--json"}).out);
  EXPECT_EQ(info["special_tokens"], json::parse(R"([{"id": 0, "content": "<a>"}, {"id": 1, "content": "<b>"}])"));
  EXPECT_EQ(info["fingerprint"], result["fingerprint"]);
  EXPECT_EQ(info["merges"], 270 - 256 - 2);
}

TEST_F(TokenizerCommand, TrainsOnStandardInputAsOnTheFile) {
  ASSERT_EQ(run({"train", "-", "--vocab-size", "275", "--out", "again"}, read_text(path("text.txt"))).status, 0);
  EXPECT_EQ(read_text(path("again/tokenizer.json")), read_text(path("made/tokenizer.json")));
}

TEST_F(TokenizerCommand, CountsTheTextOfAPackedFileUnpacked) {
  ASSERT_EQ(std::system(("xz -k " + path("text.txt").string()).c_str()), 0);
  const auto of = [&](const std::string& name) {
    return run({"train", name, "--vocab-size", "275", "--out", "made", "--force"}).err;
  };
  const std::string plain = of("text.txt"), packed = of("text.txt.xz");
  EXPECT_CONTAINS(plain, "read: 1.84kB of text");
  EXPECT_EQ(packed.substr(0, packed.find('\n')), plain.substr(0, plain.find('\n')));
}

TEST_F(TokenizerCommand, ReplacesAFileOnlyWhenForced) {
  const std::string before = read_text(path("made/tokenizer.json"));
  expect_refused(run({"train", "text.txt", "--vocab-size", "270", "--out", "made"}), 2,
                 {"found made/tokenizer.json", "--force"});
  EXPECT_EQ(read_text(path("made/tokenizer.json")), before);
  EXPECT_EQ(run({"train", "text.txt", "--vocab-size", "270", "--out", "made", "--force"}).status, 0);
  EXPECT_NE(read_text(path("made/tokenizer.json")), before);
}

TEST_F(TokenizerCommand, EncodesAndDecodesTextFilesAndStandardInput) {
  const auto ids = run({"encode", "--tokenizer", "made", "The lamp"});
  EXPECT_EQ(ids.status, 0);
  EXPECT_EQ(run({"encode", "--tokenizer", "made"}, "The lamp").out, ids.out);
  write_text(path("lamp.txt"), "The lamp");
  EXPECT_EQ(run({"encode", "--tokenizer", "made", "--file", "lamp.txt"}).out, ids.out);
  EXPECT_EQ(run({"decode", "--tokenizer", "made"}, ids.out).out, "The lamp");
  EXPECT_EQ(run({"decode", "--tokenizer", "made", "0", "256,0"}).out.substr(0, 13), "<|endoftext|>");
  EXPECT_EQ(run({"decode", "--tokenizer", "made", "--skip-special", "0", "0"}).out, "");
}

TEST_F(TokenizerCommand, BringsBytesThatAreNoTextThroughAPipe) {
  std::string bytes;
  for (int i = 0; i < 600; ++i) bytes += static_cast<char>(i * 7);
  const auto ids = run({"encode", "--tokenizer", "made"}, bytes);
  EXPECT_EQ(run({"decode", "--tokenizer", "made"}, ids.out).out, bytes);
  // Byte order marks and signatures of compressed files are bytes like all others here.
  using namespace std::string_literals;
  for (const auto& start : {"\xEF\xBB\xBF"s, "\x1F\x8B\x08"s, "\xFD\x37zXZ\0"s, "\x28\xB5\x2F\xFD"s}) {
    const std::string text = start + "The lamp";
    EXPECT_EQ(run({"decode", "--tokenizer", "made"}, run({"encode", "--tokenizer", "made"}, text).out).out, text);
    write_text(path("start.txt"), text);
    const auto from_file = run({"encode", "--tokenizer", "made", "--file", "start.txt"});
    EXPECT_EQ(run({"decode", "--tokenizer", "made"}, from_file.out).out, text);
  }
}

TEST_F(TokenizerCommand, PrintsOneObjectADocument) {
  write_text(path("rows.jsonl"), "{\"text\": \"lamp\"}\n{\"text\": \"<|endoftext|>\"}\n");
  const auto outcome = run({"encode", "--tokenizer", "made", "--file", "rows.jsonl", "--json", "--tokens"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const size_t line = outcome.out.find('\n');
  const json first = json::parse(outcome.out.substr(0, line)), second = json::parse(outcome.out.substr(line));
  EXPECT_EQ(first["ids"].size(), first["tokens"].size());
  EXPECT_EQ(second["ids"], json::array({0}));
  EXPECT_EQ(second["tokens"], json::array({"<|endoftext|>"}));
  const auto as_text = run({"encode", "--tokenizer", "made", "--no-special", "--json", "<|endoftext|>"});
  EXPECT_GT(json::parse(as_text.out)["ids"].size(), 1u);
}

TEST_F(TokenizerCommand, ShowsWhatATokenizerHolds) {
  const auto info = run({"info", "made"});
  for (const char* part : {"275 tokens", "BOS token       <|endoftext|> (0)\n", "EOS tokens      <|endoftext|> (0)\n",
                           "\\p{L}", "begin a word", "fingerprint"})
    EXPECT_NE(info.out.find(part), std::string::npos) << info.out;
  const json object = json::parse(run({"info", "made", "--json"}).out);
  EXPECT_EQ(object["vocab_size"], 275);
  EXPECT_EQ(object["opening"], 0);
  EXPECT_EQ(object["ends"], json::array({0}));
  EXPECT_EQ(object["opens_prompts"], false);
  EXPECT_EQ(object["has_chat_template"], false);
  EXPECT_GT(object["longest_token"]["id"], 0);  // of those that are not special
}

TEST_F(TokenizerCommand, RefusesUnknownCommandsAndNamesTheNearest) {
  expect_refused(run({"tarin"}), 2, {"tarin", "did you mean train"});
  EXPECT_EQ(run({}).status, 2);
  EXPECT_EQ(run({"--help"}).status, 0);
  EXPECT_EQ(run({"train", "--help"}).status, 0);
}

TEST_F(TokenizerCommand, RefusesTrainingInputThatCannotBe) {
  write_text(path("empty.txt"), "");
  expect_refused(run({"train", "nowhere.txt", "--out", "x"}), 2, {"nowhere.txt"});
  expect_refused(run({"train", "empty.txt", "--out", "x"}), 2, {"expected text"});
  expect_refused(run({"train", "text.txt", "--vocab-size", "256", "--out", "x"}), 2, {"at least 257", "found 256"});
  expect_refused(run({"train", "text.txt", "--pattern", "(a", "--out", "x"}), 2, {"regular expression", "(a"});
  expect_refused(run({"train", "text.txt"}), 2, {"--out"});
  write_text(path("bytes.txt"), "a\xFF");
  expect_refused(run({"train", "bytes.txt", "--out", "x"}), 2, {"bytes.txt"});
  expect_refused(run({"train", "text.txt", "--pattern", "", "--out", "x"}), 2, {"pattern"});
  expect_refused(run({"train", "text.txt", "--threads", "-1", "--out", "x"}), 2, {"--threads"});
  expect_refused(run({"train", "text.txt", "--out", ""}), 2, {"--out"});
  EXPECT_FALSE(std::filesystem::exists(path("x"))) << "a failure leaves nothing";
}

TEST_F(TokenizerCommand, RefusesAnOutputThatCannotBeWrittenBeforeItTrains) {
  write_text(path("file"), "");
  const auto outcome = run({"train", "text.txt", "--vocab-size", "275", "--out", "file/under"});
  expect_refused(outcome, 2, {"file", "found a file"});
}

TEST_F(TokenizerCommand, RefusesToEncodeOrDecodeWhatIsNotThere) {
  expect_refused(run({"encode", "--tokenizer", "nowhere", "text"}), 2, {"nowhere"});
  expect_refused(run({"encode", "--tokenizer", "made", ""}), 2, {"found nothing"});
  expect_refused(run({"encode", "--tokenizer", "made"}, ""), 2, {"expected text"});
  expect_refused(run({"encode", "--tokenizer", "text.txt", "text"}), 2, {"text.txt", "expected JSON"});
  expect_refused(run({"decode", "--tokenizer", "made"}, ""), 2, {"expected token ids"});
  expect_refused(run({"decode", "--tokenizer", "made", "275"}), 2, {"0 to 274", "found 275"});
  expect_refused(run({"decode", "--tokenizer", "made", "lamp"}), 2, {"found \"lamp\""});
  expect_refused(run({"decode", "--tokenizer", "made"}, "1 99999999999"), 2, {"99999999999"});
  expect_refused(run({"info", "nowhere"}), 2, {"nowhere"});
}

TEST_F(TokenizerCommand, RefusesOptionsOfFilesBesideAText) {
  for (const auto& [option, value] :
       {std::pair{"--invalid-utf8", "error"}, {"--separator", "x"}, {"--format", "jsonl"}, {"--field", "q"}})
    expect_refused(run({"encode", "a", "--tokenizer", "made", option, value}), 2, {option, "TEXT"});
}

TEST_F(TokenizerCommand, WarnsWhenTheTextToEncodeIsTheNameOfAFile) {
  const auto outcome = run({"encode", "--tokenizer", "made", "text.txt"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.err.find("--file text.txt"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace prism
