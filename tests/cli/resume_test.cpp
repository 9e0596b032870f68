// A run that was stopped, in whatever way, ends in the same bits as an uninterrupted run.
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "prism/core/fields.h"
#include "tests/cli/process.h"

namespace prism {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// The lines of records.jsonl without times, memory use, and the records of resuming.
std::vector<std::string> timeless_records(const fs::path& run) {
  std::vector<std::string> lines;
  std::ifstream file(run / "records.jsonl");
  for (std::string line; std::getline(file, line);) {
    auto json = Json::parse(line);
    if (json["kind"] == "resume") continue;
    for (const char* timing : {"seconds", "tokens_per_s", "peak_share", "wait_share", "peak_gflops",
                               "peak_memory_bytes", "step_ms", "looked_ms"})
      json.erase(timing);
    lines.push_back(json.dump());
  }
  return lines;
}

/// The newest checkpoint of a run; empty if it has none.
fs::path newest_checkpoint_of(const fs::path& run) {
  fs::path last;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(run / "checkpoints", none))
    if (entry.path().filename().string().starts_with("step-") && entry.path() > last) last = entry.path();
  return last;
}

void expect_equal_runs(const fs::path& a, const fs::path& b) {
  const auto checkpoint_a = newest_checkpoint_of(a), checkpoint_b = newest_checkpoint_of(b);
  EXPECT_EQ(checkpoint_a.filename(), checkpoint_b.filename());
  for (const char* file : {"model.safetensors", "optimizer.safetensors", "config.json", "tokenizer.json"})
    EXPECT_TRUE(read_text(checkpoint_a / file) == read_text(checkpoint_b / file)) << file;
  EXPECT_GT(read_text(checkpoint_a / "model.safetensors").size(), 1000u);
  EXPECT_EQ(timeless_records(a), timeless_records(b));
}

std::vector<std::string> train(const std::string& out, const std::string& tokens, const std::string& threads = "1") {
  return {"train", "--recipe", "recipe.json", "--out", out, "--threads", threads, "--train.tokens", tokens};
}

std::vector<std::string> resume(const std::string& out, const std::string& threads = "1") {
  return {"train", "--out", out, "--resume", "--threads", threads};
}

class ResumeThreads : public testing::TestWithParam<const char*> {};

TEST_P(ResumeThreads, AfterATermSignalEqualsTheUninterruptedRun) {
  const auto& shop = Workshop::folder();
  ASSERT_EQ(run_prism(train("whole", "60k", GetParam()), shop).status, 0);
  const pid_t child = start_prism(train("stopped", "60k", GetParam()), shop);
  ASSERT_TRUE(wait_for_file(shop / "stopped/checkpoints"));
  ::kill(child, SIGTERM);
  const auto stopped = wait_for(child, shop);
  EXPECT_EQ(stopped.status, 1);
  EXPECT_NE(stopped.err.find("prism train --out stopped --resume"), std::string::npos) << stopped.err;
  const auto resumed = run_prism(resume("stopped", GetParam()), shop);
  EXPECT_EQ(resumed.status, 0) << resumed.err;
  expect_equal_runs(shop / "whole", shop / "stopped");
  const auto records = read_text(shop / "stopped/records.jsonl");
  EXPECT_NE(records.find("\"kind\":\"resume\""), std::string::npos) << "resuming records the machine";
  const auto again = run_prism(resume("stopped", GetParam()), shop);
  EXPECT_EQ(again.status, 0);
  EXPECT_EQ(read_text(shop / "stopped/records.jsonl"), records) << "resuming a finished run changes nothing";
  expect_equal_runs(shop / "whole", shop / "stopped");
}

TEST(Resume, ThatIsRefusedLeavesTheRunAsItWas) {
  const auto& shop = Workshop::folder();
  ASSERT_EQ(run_prism(train("refusing", "4096"), shop).status, 0);
  fs::remove_all(newest_checkpoint_of(shop / "refusing"));
  const std::string records = read_text(shop / "refusing/records.jsonl");
  const auto contents = [&] {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(shop / "refusing"))
      if (entry.is_regular_file() && entry.path().filename() != ".lock")
        files[entry.path().string()] = read_text(entry.path());
    return files;
  };
  const size_t second_line = records.find('\n') + 1;
  for (const auto& [damaged, sentence] :
       {std::pair{records.substr(0, 2000), "expected at least"},
        {records.substr(0, second_line) + "x" + records.substr(second_line + 1), "line 2"},
        {records.substr(0, second_line) + "\n" + records.substr(second_line), "a line to end at byte"}}) {
    write_text(shop / "refusing/records.jsonl", damaged);
    const auto before = contents();
    const auto outcome = run_prism(resume("refusing"), shop);
    EXPECT_EQ(outcome.status, 2) << outcome.err;
    EXPECT_NE(outcome.err.find(sentence), std::string::npos) << outcome.err;
    EXPECT_EQ(contents(), before) << sentence;
  }
  write_text(shop / "refusing/records.jsonl", records);
  EXPECT_EQ(run_prism(resume("refusing"), shop).status, 0);
}

INSTANTIATE_TEST_SUITE_P(OneAndTwo, ResumeThreads, testing::Values("1", "2"));

TEST(SlowResume, AfterTermSignalsInValidationEqualsTheUninterruptedRun) {
  const auto& shop = Workshop::folder();
  // Validation after every step takes most of the time, so most signals arrive during validation.
  const auto begin = [&](const std::string& out) {
    auto words = train(out, "10k");
    words.insert(words.end(), {"--train.eval_every_tokens", "1", "--train.log_steps", "1"});
    return words;
  };
  ASSERT_EQ(run_prism(begin("validated"), shop).status, 0);
  std::mt19937 random(7);
  int stops = 0;
  for (int attempt = 0; attempt < 60; ++attempt) {
    const pid_t child = start_prism(attempt == 0 ? begin("interrupted") : resume("interrupted"), shop);
    ASSERT_TRUE(wait_for_file(shop / "interrupted/recipe.json"));
    ::usleep(200000 + random() % 200000);
    ::kill(child, SIGTERM);
    const auto outcome = wait_for(child, shop);
    if (outcome.status == 0) break;
    ASSERT_TRUE(outcome.status == 1 || outcome.status == 128 + SIGTERM)
        << outcome.err;  // the signal came after or before prism handles signals
    stops += outcome.status == 1;
  }
  EXPECT_GT(stops, 0);
  EXPECT_EQ(run_prism(resume("interrupted"), shop).status, 0);
  expect_equal_runs(shop / "validated", shop / "interrupted");
}

TEST(Resume, ASignalStopsAStepBetweenItsBatches) {
  const auto& shop = Workshop::folder();
  auto words = train("huge-step", "100M");
  words.insert(words.end(), {"--train.accumulate", "60000"});  // minutes for a single step
  const pid_t child = start_prism(words, shop);
  ASSERT_TRUE(wait_for_file(shop / "huge-step/records.jsonl"));
  ::usleep(300000);
  ::kill(child, SIGTERM);
  const auto outcome = wait_for(child, shop);
  EXPECT_EQ(outcome.status, 1) << outcome.err;
  EXPECT_NE(outcome.err.find("stopped at step 0, saved"), std::string::npos) << outcome.err;
}

TEST(SlowResume, AfterTwentyKillsEqualsTheUninterruptedRun) {
  const auto& shop = Workshop::folder();
  const std::string tokens = "600k";
  ASSERT_EQ(run_prism(train("unkilled", tokens), shop).status, 0);
  std::mt19937 random(20);
  int kills = 0, behind_new_checkpoints = 0;
  for (int attempt = 0; kills < 20 && attempt < 60; ++attempt) {
    const bool begun = fs::exists(shop / "killed/recipe.json");
    const fs::path before = newest_checkpoint_of(shop / "killed");
    const pid_t child = start_prism(begun ? resume("killed") : train("killed", tokens), shop);
    // Even attempts are killed at a random time after the start, maybe before main(); odd ones after a new checkpoint.
    if (attempt % 2 == 0) {
      ::usleep(100000 + random() % 900000);
    } else {
      for (int wait = 0; wait < 6000 && newest_checkpoint_of(shop / "killed") == before; ++wait) ::usleep(10000);
      ::usleep(random() % 200000);
    }
    ::kill(child, SIGKILL);
    behind_new_checkpoints += newest_checkpoint_of(shop / "killed") != before;
    const auto outcome = wait_for(child, shop);
    if (outcome.status == 0) break;
    ASSERT_EQ(outcome.status, 128 + SIGKILL) << outcome.err;
    ++kills;
  }
  EXPECT_EQ(kills, 20) << "the run ended before it was killed often enough";
  EXPECT_GE(behind_new_checkpoints, 10);
  const auto last = run_prism(resume("killed"), shop);
  ASSERT_EQ(last.status, 0) << last.err;
  expect_equal_runs(shop / "unkilled", shop / "killed");
}

}  // namespace
}  // namespace prism
