// A run that was stopped, however, ends in the same bits as one that was not.
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <random>

#include "tests/cli/process.h"

namespace prism {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// records.jsonl without what a clock or the memory says.
std::vector<std::string> timeless_records(const fs::path& run) {
  std::vector<std::string> lines;
  std::ifstream file(run / "records.jsonl");
  for (std::string line; std::getline(file, line);) {
    auto json = Json::parse(line);
    for (const char* timing : {"seconds", "tokens_per_s", "peak_share", "peak_gflops", "peak_memory_bytes"})
      json.erase(timing);
    lines.push_back(json.dump());
  }
  return lines;
}

fs::path last_checkpoint_of(const fs::path& run) {
  fs::path last;
  for (const auto& entry : fs::directory_iterator(run / "checkpoints"))
    if (entry.path().filename().string().starts_with("step-") && entry.path() > last) last = entry.path();
  return last;
}

void expect_equal_runs(const fs::path& a, const fs::path& b) {
  const auto checkpoint_a = last_checkpoint_of(a), checkpoint_b = last_checkpoint_of(b);
  EXPECT_EQ(checkpoint_a.filename(), checkpoint_b.filename());
  for (const char* file : {"model.safetensors", "optimizer.safetensors", "config.json", "tokenizer.json"})
    EXPECT_TRUE(read_text(checkpoint_a / file) == read_text(checkpoint_b / file)) << file;
  EXPECT_GT(read_text(checkpoint_a / "model.safetensors").size(), 1000u);
  EXPECT_EQ(timeless_records(a), timeless_records(b));
}

std::vector<std::string> train(const std::string& out, const std::string& tokens) {
  return {"train", "--recipe", "recipe.json", "--out", out, "--threads", "1", "--train.tokens", tokens};
}

TEST(Resume, AfterATermSignalEqualsTheUninterruptedRun) {
  const auto& shop = Workshop::folder();
  ASSERT_EQ(run_prism(train("whole", "60k"), shop).status, 0);
  const pid_t child = start_prism(train("stopped", "60k"), shop);
  while (!fs::exists(shop / "stopped/checkpoints")) ::usleep(10000);
  ::kill(child, SIGTERM);
  const auto stopped = wait_for(child, shop);
  EXPECT_EQ(stopped.status, 1);
  EXPECT_NE(stopped.err.find("prism train --out stopped --resume"), std::string::npos) << stopped.err;
  const auto resumed = run_prism({"train", "--out", "stopped", "--resume", "--threads", "1"}, shop);
  EXPECT_EQ(resumed.status, 0) << resumed.err;
  expect_equal_runs(shop / "whole", shop / "stopped");
  const auto again = run_prism({"train", "--out", "stopped", "--resume", "--threads", "1"}, shop);
  EXPECT_EQ(again.status, 0) << "resuming a finished run changes nothing";
  expect_equal_runs(shop / "whole", shop / "stopped");
}

TEST(SlowResume, AfterTwentyKillsEqualsTheUninterruptedRun) {
  const auto& shop = Workshop::folder();
  const std::string tokens = "600k";
  ASSERT_EQ(run_prism(train("unkilled", tokens), shop).status, 0);
  std::mt19937 random(20);
  int kills = 0;
  for (int attempt = 0; kills < 20 && attempt < 60; ++attempt) {
    const bool begun = fs::exists(shop / "killed/recipe.json");
    const pid_t child =
        start_prism(begun ? std::vector<std::string>{"train", "--out", "killed", "--resume", "--threads", "1"}
                          : train("killed", tokens),
                    shop);
    // From before the first line of main() to a few checkpoints on.
    ::usleep(100000 + random() % 900000);
    ::kill(child, SIGKILL);
    const auto outcome = wait_for(child, shop);
    if (outcome.status == 0) break;
    ASSERT_EQ(outcome.status, 128 + SIGKILL) << outcome.err;
    ++kills;
  }
  EXPECT_EQ(kills, 20) << "the run ended before it was killed often enough";
  const auto last = run_prism({"train", "--out", "killed", "--resume", "--threads", "1"}, shop);
  ASSERT_EQ(last.status, 0) << last.err;
  expect_equal_runs(shop / "unkilled", shop / "killed");
}

}  // namespace
}  // namespace prism
