// What the models of prism analyse read: texts and token shards.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/cli/analysis/analyse.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

TEST(AnalyseReading, StopsAtDocumentsWhereTheRunWasTrainedSo) {
  std::string model = "masked";
  const auto entropies = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"entropy", model, "--data", "data", "--dtype", "float32", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const auto outcome = analyse(words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return lines_of(outcome);
  };
  fs::remove_all(Workshop::folder() / "masked");
  fs::copy(Workshop::folder() / trained(), Workshop::folder() / "masked", fs::copy_options::recursive);
  EXPECT_EQ(entropies({})[0]["reading"], "data (valid), 16 sequences of 32 tokens");
  Json recipe = Json::parse(read_text(Workshop::folder() / "masked/recipe.json"));
  recipe["data"]["document_mask"] = true;
  write_text(Workshop::folder() / "masked/recipe.json", recipe.dump());
  const auto as_trained = entropies({}), masked = entropies({"--document-mask"}),
             whole = entropies({"--no-document-mask"});
  EXPECT_EQ(as_trained[0]["reading"], "data (valid), attention within documents, 16 sequences of 32 tokens");
  EXPECT_EQ(as_trained[0]["entropy"], masked[0]["entropy"]);
  EXPECT_LT(masked[0]["entropy"].get<double>(), whole[0]["entropy"].get<double>());
  model = "masked/checkpoints/step-00000016/";
  EXPECT_EQ(entropies({})[0]["entropy"], masked[0]["entropy"]);

  const auto distance = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"attention-distance", model, "--data", "data", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return analyse(words);
  };
  const auto followed = lines_of(distance({}))[0], unmasked = lines_of(distance({"--no-document-mask"}))[0];
  EXPECT_EQ(followed["document_mask"], true);
  EXPECT_EQ(unmasked["document_mask"], false);
  EXPECT_LT(followed["layers"][0]["distance"].get<double>(), unmasked["layers"][0]["distance"].get<double>());
  expect_sentence(distance({"--against", trained()}), 2, {"same data.document_mask", "masked", "--no-document-mask"});
}

TEST(AnalyseReading, TakesAFileOfAnyEndingAsText) {
  write_text(Workshop::folder() / "notes.md", "The keeper lit the lamp.");
  const auto lines = lines_of(analyse({"norms", trained(), "notes.md", "--json"}));
  EXPECT_EQ(lines[0]["reading"].get<std::string>().find("notes.md, 1 sequence of"), 0u);
  fs::create_directory(Workshop::folder() / "nothing");
  const auto refused = analyse({"norms", trained(), "nothing"});
  expect_sentence(refused, 2, {"expected text files", "name a file"});
  EXPECT_EQ(refused.err.find("--format"), std::string::npos) << refused.err;
}

TEST(AnalyseReading, OfASplitWithoutShardsNamesTheOthers) {
  expect_sentence(analyse({"entropy", trained(), "--data", "data", "--split", "test"}), 2,
                  {"--split: expected valid or train for a language model; found \"test\"; choose one of them."});
  expect_sentence(analyse({"entropy", trained(), "--data", "nowhere", "--split", "test"}), 2, {"nothing"});
}

TEST(AnalyseReading, BeginsOnlyIfThePicturesCanBeWritten) {
  trained();
  for (const char* kind : {"entropy", "maps"}) {
    expect_sentence(analyse({kind, "nowhere", "text.txt", "--figures", "text.txt"}), 2, {"text.txt; found a file"});
    expect_sentence(analyse({kind, "nowhere", "text.txt", "--figures", "made/now"}), 2, {"nowhere"});
    EXPECT_FALSE(fs::exists(Workshop::folder() / "made")) << "a folder for pictures that are not drawn is removed";
  }
}

TEST(AnalyseReading, NamesSplitAndTextSoThatTablesAreNotMixed) {
  EXPECT_EQ(lines_of(analyse({"norms", trained(), "--data", "data", "--split", "train", "--sequences", "2",
                              "--json"}))[0]["reading"],
            "data (train), 2 sequences of 32 tokens");
  EXPECT_EQ(
      lines_of(analyse({"norms", trained(), "--text", "a \"b\"", "--json"}))[0]["reading"].get<std::string>().substr(0,
                                                                                                                     7),
      "\"a \"b\"\"");
}

}  // namespace
}  // namespace prism
