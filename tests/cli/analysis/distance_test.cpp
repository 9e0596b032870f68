// Runs prism analyse attention-distance as a user does: its table, its lines, and what it refuses to compare.
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "tests/cli/analysis/analyse.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

Outcome distance(std::vector<std::string> words) {
  words.insert(words.begin(), {"analyse", "attention-distance"});
  words.insert(words.end(), {"--threads", "1"});
  return run(words);
}

TEST(AttentionDistance, ExplainsItselfInItsHelp) {
  const auto help = run({"analyse", "attention-distance", "--help"});
  EXPECT_EQ(help.status, 0) << help.err;
  for (const char* words : {"mean distance, in tokens, to the tokens it attends to", "Small:", "Large:", "3/8",
                            "--against", "--data", "--sequences", "--tokens", "--json",
                            "prism analyse attention-distance runs/", "prism report --analysis", "Exit status"})
    EXPECT_NE(help.out.find(words), std::string::npos) << words;
}

TEST(AttentionDistance, OfARunHasARowALayer) {
  const auto outcome = distance({trained(), "--data", "data", "--sequences", "3"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("\n0      1 x 32 "), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("\n1      2 x 16 "), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("48 queries: the second half of each sequence. Input: data (valid), 3 sequences of 32"),
            std::string::npos)
      << outcome.out;
  EXPECT_EQ(outcome.out.find("±"), std::string::npos) << "one model scatters over nothing";
}

TEST(AttentionDistance, AsJsonHasALineAModelAndALineALayer) {
  const auto lines = lines_of(distance({trained(), "--data", "data", "--sequences", "3", "--tokens", "16", "--json"}));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0]["kind"], "model");
  EXPECT_EQ(lines[0]["model"], trained());
  EXPECT_EQ(lines[0]["sequences"], 3);
  EXPECT_EQ(lines[0]["context"], 16);
  EXPECT_EQ(lines[0]["queries"], 3 * 8);
  EXPECT_EQ(lines[0]["layers"][1]["head_distances"].size(), 2u);
  EXPECT_EQ(lines[2]["kind"], "layer");
  EXPECT_EQ(lines[2]["layer"], 1);
  EXPECT_EQ(lines[2]["distance"], lines[0]["layers"][1]["distance"]);
  for (const auto& layer : lines[0]["layers"]) {
    EXPECT_GT(layer["distance"], 0);
    EXPECT_LT(layer["distance"], 3.0 / 4 * 16);
  }
}

TEST(AttentionDistance, OfTwoArmsPairsTheirSeedsAndMarksOtherHeads) {
  const std::vector<std::string> words = {
      prism_seed("1"), prism_seed("2"), "--against", uniform_seed("1"), uniform_seed("2"), "--data",
      "data",          "--sequences",   "4"};
  auto as_json = words;
  as_json.emplace_back("--json");
  const auto lines = lines_of(distance(as_json));
  ASSERT_EQ(lines.size(), 4u + 2u);
  EXPECT_EQ(lines[0]["arm"], "model");
  EXPECT_EQ(lines[3]["arm"], "against");
  EXPECT_EQ(lines[3]["model"], "uniform-2");
  for (size_t layer = 0; layer < 2; ++layer) {
    const auto& row = lines[4 + layer];
    const auto of = [&](size_t model) { return lines[model]["layers"][layer]["distance"].get<double>(); };
    EXPECT_EQ(row["paired"], true);
    EXPECT_EQ(row["same_heads"], layer == 1);
    EXPECT_NEAR(row["arm"]["distance"], (of(0) + of(1)) / 2, 1e-9);
    EXPECT_NEAR(row["difference"], (of(0) - of(2) + of(1) - of(3)) / 2, 1e-9);
    EXPECT_NEAR(row["difference_sd"], std::abs((of(0) - of(2)) - (of(1) - of(3))) / std::sqrt(2.0), 1e-9);
  }
  const auto table = distance(words);
  EXPECT_NE(table.out.find("paired: rising-1 - uniform-1 and rising-2 - uniform-2"), std::string::npos) << table.out;
  std::istringstream rows(table.out);
  std::string header, first, second;
  std::getline(rows, header);
  std::getline(rows, first);
  std::getline(rows, second);
  EXPECT_TRUE(first.ends_with("yes")) << first;
  EXPECT_FALSE(second.ends_with("yes")) << second;
  EXPECT_NE(second.find(" ± "), std::string::npos) << second;
}

TEST(AttentionDistance, IsShownByTheReportFromItsLines) {
  const auto json = distance({prism_seed("1"), prism_seed("2"), "--against", uniform_seed("1"), uniform_seed("2"),
                              "--data", "data", "--sequences", "2", "--json"});
  const auto lines = lines_of(json);
  EXPECT_EQ(lines[0]["reading"], "data (valid), 2 sequences of 32 tokens");
  EXPECT_EQ(lines[4]["models"], Json({"rising-1", "rising-2"}));
  EXPECT_EQ(lines[4]["against_models"], Json({"uniform-1", "uniform-2"}));
  write_text(Workshop::folder() / "distance.jsonl", json.out);
  const auto report = run({"report", "--analysis", "distance.jsonl", "--out", "distance.html", "--markdown",
                           "distance.md", "--figures", "distance"});
  ASSERT_EQ(report.status, 0) << report.err;
  EXPECT_NE(report.out.find("paired: rising-1 - uniform-1 and rising-2 - uniform-2"), std::string::npos) << report.out;
  const std::string page = read_text(Workshop::folder() / "distance.html");
  EXPECT_NE(page.find("rising-1 and 1 more against uniform-1 and 1 more"), std::string::npos);
  EXPECT_NE(page.find("with bands of one sample standard deviation"), std::string::npos);
  EXPECT_TRUE(fs::exists(Workshop::folder() / "distance/attention-distance.svg"));
  EXPECT_TRUE(fs::exists(Workshop::folder() / "distance/attention-distance-heads-4.svg")) << "one for each model";
  const std::string document = read_text(Workshop::folder() / "distance.md");
  EXPECT_NE(document.find("distance/attention-distance.svg"), std::string::npos);
}

TEST(AttentionDistance, PairsRunsByTheirSeedsWhateverTheirOrder) {
  const std::vector<std::string> more = {"--data", "data", "--sequences", "2", "--json"};
  const auto with = [&](const std::vector<std::string>& against) {
    std::vector<std::string> words = {prism_seed("1"), prism_seed("2"), "--against"};
    words.insert(words.end(), against.begin(), against.end());
    words.insert(words.end(), more.begin(), more.end());
    return distance(words);
  };
  EXPECT_EQ(with({uniform_seed("2"), uniform_seed("1")}).out, with({uniform_seed("1"), uniform_seed("2")}).out);
  expect_sentence(with({uniform_seed("1"), uniform_seed("3")}), 2, {"same seeds", "found seed 2 of rising-2"});
}

TEST(AttentionDistance, OfArmsOfOtherSizesSaysThatNothingIsPaired) {
  const auto outcome = distance({prism_seed("1"), prism_seed("2"), "--against", uniform_seed("1"), "--data", "data"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("means of 2 and 1 models, not paired"), std::string::npos) << outcome.out;
}

TEST(AttentionDistance, TakesAllWindowsWhereThereAreFewerThanAskedFor) {
  const auto all = lines_of(distance({trained(), "--data", "data", "--sequences", "1M", "--json"}));
  const auto info = Json::parse(read_text(Workshop::folder() / "data/data.json"));
  EXPECT_EQ(all[0]["sequences"], (info["valid_tokens"].get<int64_t>() - 1) / 32);
  const auto masked =
      lines_of(distance({trained(), "--data", "data", "--sequences", "1M", "--document-mask", "--json"}));
  EXPECT_NE(masked[0]["layers"][1]["distance"], all[0]["layers"][1]["distance"]);
}

TEST(AttentionDistanceInput, ThatIsWrongGetsASentence) {
  expect_sentence(distance({trained()}), 2, {"--data"});
  expect_sentence(distance({"nowhere", "--data", "data"}), 2, {"nowhere"});
  expect_sentence(distance({trained(), "--data", "nowhere"}), 2, {"nowhere", "prism tokenize"});
  expect_sentence(distance({trained(), "--data", "data", "--split", "test"}), 2,
                  {"--split: expected valid or train for a language model; found \"test\"; choose one of them."});
  expect_sentence(distance({trained(), "--data", "data", "--sequences", "0"}), 2, {"--sequences", "at least 1"});
  expect_sentence(distance({trained(), "--data", "data", "--tokens", "33"}), 2, {"--tokens", "1 to 32", "33"});
  expect_sentence(distance({trained(), "--data", "data", "--tokens", "-1"}), 2, {"--tokens", "-1"});
  expect_sentence(distance({trained(), "--data", "data", "--dtype", "int8"}), 2, {"int8"});
  fs::create_directory(Workshop::folder() / "short");
  for (const auto& entry : fs::directory_iterator(Workshop::folder() / "data"))
    if (entry.path().filename() != "data.json")
      fs::copy(entry.path(), Workshop::folder() / "short", fs::copy_options::overwrite_existing);
  fs::remove(Workshop::folder() / "short/valid_000000.bin");
  expect_sentence(distance({trained(), "--data", "short"}), 2, {"valid_*.bin", "short"});
}

TEST(AttentionDistanceInput, OfModelsThatCannotBeComparedIsRefused) {
  const auto deeper = run_with("deeper", {"--model.schedule", "1x1,2x2"});
  expect_sentence(distance({trained(), "--against", deeper, "--data", "data"}), 2,
                  {"same number of layers", "2", "3", "deeper"});
  expect_sentence(distance({trained(), uniform_seed("1"), "--data", "data"}), 2,
                  {"same head schedule", "1x1,2x1", "2x2", "--against"});
  const auto shorter = run_with("shorter", {"--model.context", "16"});
  expect_sentence(distance({trained(), "--against", shorter, "--data", "data"}), 2, {"32", "16", "--tokens"});
  EXPECT_EQ(distance({trained(), "--against", shorter, "--data", "data", "--tokens", "16"}).status, 0);
}

TEST(AttentionDistanceInput, OfAnotherTokenizerIsRefused) {
  ASSERT_EQ(run({"tokenizer", "train", "text.txt", "--vocab-size", "310", "--out", "wider"}).status, 0);
  ASSERT_EQ(run({"tokenize", "text.txt", "--separator", "\\n\\n", "--tokenizer", "wider", "--valid-share", "0.2",
                 "--out", "wider-data"})
                .status,
            0);
  expect_sentence(distance({trained(), "--data", "wider-data"}), 2, {"tokenizer of trained", "wider-data"});
  const auto other = run_with("other", {"--data.folder", "wider-data"});
  expect_sentence(distance({trained(), "--against", other, "--data", "data"}), 2, {"same tokenizer", "other"});
  // Without data.json, the tokenizer beside the shards is compared.
  fs::remove(Workshop::folder() / "wider-data/data.json");
  expect_sentence(distance({trained(), "--data", "wider-data"}), 2, {"tokenizer of trained", "wider-data"});
}

}  // namespace
}  // namespace prism
