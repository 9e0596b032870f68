#include "prism/tokenizer/bpe/train.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "prism/core/error.h"
#include "prism/tokenizer/split/scanner.h"
#include "tests/core/message_of.h"
#include "tests/core/temporary_folder.h"
#include "tests/tokenizer/tokenizer_helpers.h"

namespace prism {
namespace {

using nlohmann::json;

/// Yields one text after another.
TextSupply supply(std::vector<std::string> texts) {
  return [texts = std::move(texts), at = size_t{0}](std::string& text) mutable {
    if (at == texts.size()) return false;
    text = texts[at++];
    return true;
  };
}

json train_json(const std::vector<std::string>& texts, const BpeTrainOptions& options, int threads = 1) {
  const TemporaryFolder folder;
  train_bpe(supply(texts), options, threads).save(folder.path() / "tokenizer.json");
  return json::parse(read_file(folder.path() / "tokenizer.json"));
}

/// A text with a few thousand distinct words, some far more frequent than others, and many ties.
std::vector<std::string> made_up_documents() {
  Random random(8);
  std::vector<std::string> documents(20);
  for (auto& document : documents) {
    for (int word = 0; word < 2000; ++word) {
      const uint64_t kind = random.below(1 + random.below(3000));
      for (uint64_t rest = kind + 1; rest > 0; rest /= 7) document += static_cast<char>('a' + rest % 7);
      document += random.below(12) == 0 ? ".\n" : " ";
    }
  }
  return documents;
}

TEST(Train, LearnsHuggingFacesMerges) {
  struct Row {
    const char* fixture;
    const char* pattern;
    int64_t vocab_size, min_frequency;
  };
  for (const auto& row : {Row{"gpt2.json", "gpt2", 400, 2}, Row{"llama3.json", "llama3", 420, 0}}) {
    json expected = fixture_json(row.fixture)["model"];
    expected["vocab"].erase("ĠxyzzyQ");  // the fixture's extra token
    for (auto& merge : expected["merges"]) merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
    BpeTrainOptions options;
    options.vocab_size = row.vocab_size;
    options.min_frequency = row.min_frequency;
    options.pattern = row.pattern;
    const json learnt = train_json(fixture_documents(), options)["model"];
    EXPECT_EQ(learnt["vocab"], expected["vocab"]) << row.fixture;
    EXPECT_EQ(learnt["merges"], expected["merges"]) << row.fixture;
  }
}

TEST(Train, GivesTheSameFileForAnyNumberOfThreadsAndOrderOfDocuments) {
  auto documents = made_up_documents();
  BpeTrainOptions options;
  options.vocab_size = 700;
  const json one = train_json(documents, options, 1);
  EXPECT_EQ(one["model"]["vocab"].size(), 700u);
  EXPECT_EQ(train_json(documents, options, 4), one);
  std::reverse(documents.begin(), documents.end());
  EXPECT_EQ(train_json(documents, options, 3), one);
}

TEST(Train, CutsLongTextsForItsThreadsWithoutChangingTheResult) {
  std::string text;
  while (text.size() < (size_t{5} << 20)) {
    for (const auto& document : made_up_documents()) text += document;
  }
  BpeTrainOptions options;
  options.vocab_size = 600;
  // An equivalent pattern that is not recognised is never cut.
  BpeTrainOptions whole = options;
  whole.pattern = "(?:" + std::string(kGpt2Pattern) + ")";
  EXPECT_EQ(train_json({text}, options, 2)["model"], train_json({text}, whole, 1)["model"]);
}

TEST(Train, PutsSpecialTokensFirstAndFindsThemInText) {
  BpeTrainOptions options;
  options.vocab_size = 300;
  options.special_tokens = {"<|endoftext|>", "<|user|>"};
  const Tokenizer tokenizer = train_bpe(supply(fixture_documents()), options, 1);
  EXPECT_EQ(tokenizer.vocab_size(), 300);
  EXPECT_EQ(tokenizer.merge_count(), 300 - 256 - 2);
  EXPECT_EQ(tokenizer.find("<|endoftext|>"), 0);
  EXPECT_EQ(tokenizer.find("<|user|>"), 1);
  EXPECT_EQ(tokenizer.special_ids().opening, 0);
  EXPECT_EQ(tokenizer.encode("<|user|>")[0], 1);
}

TEST(Train, StopsWhereNoPairIsFrequentEnough) {
  BpeTrainOptions options;
  options.vocab_size = 1000;
  options.min_frequency = 3;
  // "ab" occurs four times, " ab" three times, "cd" and " cd" twice.
  EXPECT_EQ(train_bpe(supply({"ab ab ab ab cd cd"}), options, 1).merge_count(), 2);
  options.min_frequency = 0;
  EXPECT_EQ(train_bpe(supply({"ab"}), options, 1).merge_count(), 1);
}

TEST(Train, BreaksTiesTowardsTheSmallerIds) {
  BpeTrainOptions options;
  options.min_frequency = 1;
  options.vocab_size = 257 + 1;
  const json merges = train_json({"zy\nba\nab"}, options)["model"]["merges"];
  EXPECT_EQ(merges, json::array({"a b"}));
}

TEST(Train, LearnsNothingFromIllFormedBytes) {
  BpeTrainOptions options;
  options.vocab_size = 300;
  const json clean = train_json({"the lamp", " the lamp"}, options);
  EXPECT_EQ(train_json({"the lamp\xFF\xFE the lamp\xE7\x81"}, options), clean);
}

TEST(Train, RefusesEmptyText) {
  EXPECT_NE(message_of([] { train_bpe(supply({}), {}, 1); }).find("expected text"), std::string::npos);
  EXPECT_NE(message_of([] { train_bpe(supply({"", ""}), {}, 2); }).find("expected text"), std::string::npos);
}

TEST(Train, RefusesAVocabularySmallerThanBytesAndSpecialTokens) {
  BpeTrainOptions options;
  options.vocab_size = 257;
  EXPECT_NO_THROW(train_bpe(supply({"ab"}), options, 1));
  options.special_tokens.emplace_back("<|pad|>");
  const std::string message = message_of([&] { train_bpe(supply({"ab"}), options, 1); });
  EXPECT_NE(message.find("at least 258"), std::string::npos) << message;
}

TEST(Train, RefusesOptionsThatMakeNoSense) {
  const auto refused = [](const std::function<void(BpeTrainOptions&)>& change, int threads = 1) {
    BpeTrainOptions options;
    change(options);
    return message_of([&] { train_bpe(supply({"text"}), options, threads); });
  };
  EXPECT_NE(refused([](auto& o) { o.min_frequency = -1; }).find("min_frequency"), std::string::npos);
  EXPECT_NE(refused([](auto& o) { o.vocab_size = int64_t{1} << 40; }).find("at most"), std::string::npos);
  EXPECT_NE(refused([](auto& o) { o.special_tokens = {""}; }).find("an empty one"), std::string::npos);
  EXPECT_NE(refused([](auto& o) { o.special_tokens = {"a\xFF"}; }).find("not UTF-8"), std::string::npos);
  EXPECT_NE(refused([](auto& o) { o.special_tokens = {"x", "x"}; }).find("twice"), std::string::npos);
  EXPECT_NE(refused([](auto& o) { o.pattern = "(a"; }).find("--pattern"), std::string::npos);
  EXPECT_NE(refused([](auto&) {}, 0).find("one thread"), std::string::npos);
}

TEST(Train, CanBeStoppedBeforeAnyMerge) {
  int merges = 0;
  const auto stop_at_third = [&](const TrainProgress& now) {
    if (now.phase == TrainProgress::Phase::merge && ++merges == 3) throw FailedError("test", "stopped.");
  };
  BpeTrainOptions options;
  options.vocab_size = 300;
  options.min_frequency = 1;
  EXPECT_THROW(train_bpe(supply({"some words and some more words"}), options, 1, stop_at_third), FailedError);
  EXPECT_EQ(merges, 3);
}

TEST(Train, PassesOnWhatTheSourceThrows) {
  int calls = 0;
  const TextSupply broken = [&](std::string& text) {
    text = "some words";
    if (++calls > 5) throw InputError("text", "line 6 is broken.");
    return true;
  };
  EXPECT_NE(message_of([&] { train_bpe(broken, {}, 3); }).find("line 6"), std::string::npos);
}

TEST(Train, PassesOnWhatAThreadThrows) {
  BpeTrainOptions options;
  options.pattern = "(a+)+[bc]";  // exponential backtracking
  const std::vector<std::string> texts(50, std::string(60, 'a'));
  EXPECT_NE(message_of([&] { train_bpe(supply(texts), options, 2); }).find("backtracking"), std::string::npos);
}

}  // namespace
}  // namespace prism
