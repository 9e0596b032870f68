// Runs prism train as a user does: checks its results and resuming, and that every wrong input gets one sentence.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <map>
#include <nlohmann/json.hpp>

#include "prism/core/fields.h"
#include "tests/cli/commands.h"

namespace prism {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

TEST(Train, WritesRecordsCheckpointsAndTheWholeRecipe) {
  const auto folder = Workshop::folder() / trained();
  const auto recipe = Json::parse(read_text(folder / "recipe.json"));
  EXPECT_EQ(recipe["model"]["layers"].size(), 2u);
  EXPECT_EQ(recipe["model"]["schedule"], "");
  EXPECT_EQ(recipe["model"]["vocab_size"], 300);
  for (const char* name :
       {"step-00000012", "step-00000016", "weights-00000001", "weights-00000008", "weights-00000016"})
    EXPECT_TRUE(fs::exists(folder / "checkpoints" / name / "config.json")) << name;
  EXPECT_FALSE(fs::exists(folder / "checkpoints/step-00000008")) << "only the last two are kept";
  std::map<std::string, int> kinds;
  std::ifstream file(folder / "records.jsonl");
  double first_loss = 0, last_loss = 0;
  for (std::string line; std::getline(file, line);) {
    const auto record = Json::parse(line);
    ++kinds[record["kind"]];
    if (record["kind"] == "train") (first_loss == 0 ? first_loss : last_loss) = record["loss"].get<double>();
  }
  EXPECT_EQ(kinds, (std::map<std::string, int>{
                       {"run", 1}, {"train", 6}, {"diagnostics", 3}, {"eval", 2}, {"sample", 1}, {"end", 1}}));
  EXPECT_LT(last_loss, first_loss - 0.2);
}

TEST(Train, RestartsInAFolderWhoseRunDidNotEnd) {
  const std::vector<std::string> words = {"train", "--recipe", "recipe.json", "--out", "restarted", "--threads", "1"};
  const auto with = [&](const std::vector<std::string>& more) {
    auto all = words;
    all.insert(all.end(), more.begin(), more.end());
    return run(all);
  };
  expect_sentence(with({"--train.learning_rate", "1e30", "--train.warmup_share", "0", "--train.clip", "0"}), 1,
                  {"finite"});
  expect_sentence(with({}), 2, {"--resume", "--restart"});
  write_text(Workshop::folder() / "restarted/mine.txt", "x");
  expect_sentence(with({"--restart"}), 2, {"mine.txt"});
  fs::remove(Workshop::folder() / "restarted/mine.txt");
  fs::create_directory(Workshop::folder() / "restarted/checkpoints");
  write_text(Workshop::folder() / "restarted/checkpoints/mine.txt", "x");
  expect_sentence(with({"--restart"}), 2, {"checkpoints/mine.txt", "move it away"});
  fs::remove(Workshop::folder() / "restarted/checkpoints/mine.txt");
  for (const char* mine : {"checkpoints/step-99", "checkpoints/step-00000099/mine", "events.out.tfevents.mine"}) {
    fs::create_directories(Workshop::folder() / "restarted" / mine);
    expect_sentence(with({"--restart"}), 2, {fs::path(mine).filename().string()});
    fs::remove_all(Workshop::folder() / "restarted" / mine);
  }
  expect_sentence(with({"--restart", "--init", "restarted"}), 2, {"init outside restarted"});
  write_text(Workshop::folder() / "restarted/records.jsonl", "no records\n");
  EXPECT_EQ(with({"--restart"}).status, 0);
  const auto records = read_text(Workshop::folder() / "restarted/records.jsonl");
  EXPECT_EQ(records.find("diverged"), std::string::npos);
  EXPECT_NE(records.find("\"kind\":\"end\""), std::string::npos);
  expect_sentence(with({"--restart"}), 2, {"finished run", "choose another --out"});
  expect_sentence(with({}), 2, {"finished run", "choose another --out"});
  EXPECT_EQ(read_text(Workshop::folder() / "restarted/records.jsonl"), records);
  expect_sentence(with({"--restart", "--resume"}), 2, {"leave one out"});
}

TEST(Train, RefusesAStateThatIsNotTheRuns) {
  ASSERT_EQ(run({"train", "--recipe", "recipe.json", "--out", "own", "--threads", "1"}).status, 0);
  const auto run_folder = Workshop::folder() / "own";
  const auto refuse = [&](const fs::path& file, const std::string& text, const std::vector<std::string>& parts) {
    const std::string before = read_text(file);
    write_text(file, text);
    expect_sentence(run({"train", "--out", "own", "--resume"}), 2, parts);
    write_text(file, before);
  };
  auto recipe = Json::parse(read_text(run_folder / "recipe.json"));
  recipe["seed"] = 4;
  refuse(run_folder / "recipe.json", recipe.dump(), {"recipe.json changed"});
  const auto last = run_folder / "checkpoints/step-00000016/state.json";
  auto state = Json::parse(read_text(last));
  state["threads"] = -3;
  refuse(last, state.dump(), {"threads from 0 to 1024", "-3"});
  refuse(last, read_text(run_folder / "checkpoints/step-00000012/state.json"), {"step 12"});
  // The data may move to another folder.
  fs::copy(Workshop::folder() / "data", Workshop::folder() / "moved_data", fs::copy_options::recursive);
  recipe["seed"] = 3;
  recipe["data"]["folder"] = "moved_data";
  write_text(run_folder / "recipe.json", recipe.dump());
  EXPECT_EQ(run({"train", "--out", "own", "--resume"}).status, 0);
}

TEST(Train, RefusesDataWithFewerWindowsThanAStep) {
  expect_sentence(run({"train", "--recipe", "recipe.json", "--out", "none", "--model.context", "0"}), 2,
                  {"model.context"});
  expect_sentence(run({"train", "--recipe", "recipe.json", "--out", "none", "--data.stride", "1000000"}), 2,
                  {"windows", "found 1 at data.stride 1000000", "lower data.stride"});
  EXPECT_FALSE(fs::exists(Workshop::folder() / "none"));
}

TEST(Train, RefusesActivationsThatCannotFitBeforeTheFirstStep) {
  // 8,000 rows of 32 tokens. The hidden features alone take 2 x 2 x 100,000 x 3 bytes per token.
  expect_sentence(run({"train", "--recipe", "recipe.json", "--out", "none", "--train.tokens", "1000G", "--data.stride",
                       "1", "--train.batch_rows", "8000", "--model.ffn_width", "100000"}),
                  2, {"activations", "train.batch_rows", "train.recompute"});
  EXPECT_FALSE(fs::exists(Workshop::folder() / "none"));
}

TEST(Train, RecordsTheLossOfWholeTextsDocumentByDocument) {
  const auto outcome = run({"train", "--recipe", "recipe.json", "--out", "final", "--threads", "1", "--final",
                            R"({"texts": [{"name": "all", "separator": "\\n\\n", "files": ["text.txt"]}]})"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  std::ifstream file(Workshop::folder() / "final/records.jsonl");
  Json found;
  for (std::string line; std::getline(file, line);)
    if (auto record = Json::parse(line); record["kind"] == "text_loss") found = record;
  EXPECT_EQ(found["text"], "all");
  EXPECT_EQ(found["step"], 16);
  double nats = 0;
  for (const auto& document : found["documents"]) nats += document[0].get<double>();
  EXPECT_GT(found["documents"].size(), 10u);
  EXPECT_NEAR(nats, found["nats"].get<double>(), 1e-6 * nats);
  const auto eval = Json::parse(
      run({"eval", "final", "text.txt", "--separator", "\\n\\n", "--threads", "1", "--json", "--weights", "float32"})
          .out);
  EXPECT_NEAR(eval["nats"].get<double>(), nats, 1e-9 * nats) << "texts are scored with the run's final weights";
  expect_sentence(run({"train", "--recipe", "recipe.json", "--out", "none", "--final",
                       R"({"texts": [{"name": "all", "files": ["absent.txt"]}]})"}),
                  2, {"absent.txt"});
  // Texts are read before training begins, not after it.
  write_text(Workshop::folder() / "damaged.txt", "sound, then \xFF\xFE");
  write_text(Workshop::folder() / "empty.txt", "");
  for (const char* name : {"damaged.txt", "empty.txt", "-"}) {
    const std::string final_fields = std::string(R"({"texts": [{"name": "all", "files": [")") + name + R"("]}]})";
    expect_sentence(run({"train", "--recipe", "recipe.json", "--out", "none", "--final", final_fields}), 2, {"text"});
    EXPECT_FALSE(fs::exists(Workshop::folder() / "none")) << name;
  }
}

TEST(Train, GivesTheSameBitsForTheSameSeedAndOthersForAnother) {
  const auto words = [](const std::string& out, const std::string& seed) {
    return std::vector<std::string>{"train", "--recipe", "recipe.json", "--out", out, "--threads", "1", "--seed", seed};
  };
  ASSERT_EQ(run(words("seed3", "3")).status, 0);
  ASSERT_EQ(run(words("seed4", "4")).status, 0);
  const auto weights = [&](const std::string& out) {
    return read_text(Workshop::folder() / out / "checkpoints/step-00000016/model.safetensors");
  };
  EXPECT_TRUE(weights("seed3") == read_text(last_checkpoint() / "model.safetensors"));
  EXPECT_FALSE(weights("seed3") == weights("seed4"));
}

TEST(Train, WithDocumentMaskDiffers) {
  const auto outcome =
      run({"train", "--recipe", "recipe.json", "--out", "masked", "--data.document_mask", "on", "--threads", "1"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_FALSE(read_text(Workshop::folder() / "masked/checkpoints/step-00000016/model.safetensors") ==
               read_text(last_checkpoint() / "model.safetensors"));
}

}  // namespace
}  // namespace prism
