// Runs prism sweep as a user does: to its end, interrupted, and again. Every wrong input gets one sentence.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "prism/core/fields.h"
#include "tests/cli/commands.h"

namespace prism {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

void write_sweep(const std::string& name, const std::string& more) {
  write_text(Workshop::folder() / name, R"({"recipe": "recipe.json", "seeds": [1, 2],
    "set": {"train.tokens": 2048, "train.eval_every_tokens": 1024, "train.checkpoint_every_tokens": 256,
            "train.save_steps": "none", "train.sample_prompts": []},
    "arms": {"uniform": {"model.schedule": "2x2"}, "progressive": {}})" +
                                            more + "}");
}

/// The records of the runs in a folder, without times and memory use.
std::string untimed_records(const std::string& out) {
  std::string kept;
  for (const char* name : {"uniform-seed1", "uniform-seed2", "progressive-seed1", "progressive-seed2"}) {
    std::istringstream lines(read_text(Workshop::folder() / out / name / "records.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      auto record = Json::parse(line);
      if (record["kind"] == "run" || record["kind"] == "resume") continue;
      for (const char* timed :
           {"seconds", "tokens_per_s", "peak_share", "wait_share", "peak_memory_bytes", "step_ms", "looked_ms"})
        record.erase(timed);
      kept += std::string(name) + " " + record.dump() + "\n";
    }
  }
  return kept;
}

TEST(Sweep, TrainsEveryArmWithEverySeedAndComparesThem) {
  write_sweep("sweep.json", R"(, "keep": "records")");
  const auto plan = run({"sweep", "sweep.json", "--plan"});
  EXPECT_EQ(plan.status, 0) << plan.err;
  EXPECT_NE(plan.out.find("to do"), std::string::npos);
  EXPECT_FALSE(fs::exists(Workshop::folder() / "runs/sweep"));
  const auto outcome = run({"sweep", "sweep.json", "--jobs", "2", "--threads", "2", "--records", "kept"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("progressive"), std::string::npos);
  for (const char* name : {"uniform-seed1", "uniform-seed2", "progressive-seed1", "progressive-seed2"}) {
    EXPECT_TRUE(fs::exists(Workshop::folder() / "runs/sweep" / name / "records.jsonl")) << name;
    EXPECT_FALSE(fs::exists(Workshop::folder() / "runs/sweep" / name / "checkpoints")) << name;
    EXPECT_TRUE(fs::exists(Workshop::folder() / "kept" / name / "recipe.json")) << name;
  }
  EXPECT_TRUE(fs::exists(Workshop::folder() / "runs/sweep/report.html"));
  // Compares from the records alone, in a folder without runs.
  const auto again = run({"sweep", "sweep.json", "--out", "elsewhere", "--records", "kept", "--json"});
  EXPECT_EQ(again.status, 0) << again.err;
  std::istringstream lines(again.out);
  std::vector<Json> arms;
  for (std::string line; std::getline(lines, line);) arms.push_back(Json::parse(line));
  ASSERT_EQ(arms.size(), 2u);
  EXPECT_EQ(arms[0]["arm"], "uniform");
  EXPECT_EQ(arms[1]["pairs"], 2);
  EXPECT_NEAR(arms[1]["difference"].get<double>(),
              arms[1]["val_loss"].get<double>() - arms[0]["val_loss"].get<double>(), 1e-12);
  EXPECT_LT(arms[1]["low"].get<double>(), arms[1]["high"].get<double>());
  EXPECT_FALSE(fs::exists(Workshop::folder() / "elsewhere/uniform-seed1"));
  EXPECT_TRUE(fs::exists(Workshop::folder() / "elsewhere/report.md"));
  // A recipe of an earlier version with fewer fields is still a seed of the same experiment.
  const auto file = Workshop::folder() / "kept/uniform-seed1/recipe.json";
  auto recipe = Json::parse(read_text(file));
  EXPECT_EQ(recipe["train"].erase("recompute"), 1u);
  EXPECT_EQ(recipe["model"].erase("qk_norm"), 1u);
  write_text(file, recipe.dump());
  const auto report = run({"report", "kept/uniform-seed1", "kept/uniform-seed2"});
  EXPECT_EQ(report.status, 0) << report.err;
  EXPECT_EQ(report.err.find("stand apart"), std::string::npos) << report.err;
}

TEST(SlowSweep, ThatIsKilledAgainAndAgainEndsInTheSameRecords) {
  write_sweep("killed.json", "");
  ASSERT_EQ(run({"sweep", "killed.json", "--threads", "1", "--out", "whole"}).status, 0);
  const std::vector<std::string> words = {"sweep", "killed.json", "--threads", "2", "--jobs", "2", "--out", "killed"};
  uint32_t state = 12345;
  for (int i = 0; i < 10; ++i) {
    state = state * 1664525u + 1013904223u;
    const pid_t child = start_prism(words, Workshop::folder());
    std::this_thread::sleep_for(std::chrono::milliseconds(300 + (state >> 16) % 1500));
    ::kill(child, i % 2 == 0 ? SIGKILL : SIGTERM);
    wait_for(child, Workshop::folder());
  }
  const auto last = run(words);
  ASSERT_EQ(last.status, 0) << last.err;
  EXPECT_NE(untimed_records("whole"), "");
  EXPECT_EQ(untimed_records("killed"), untimed_records("whole"));
}

TEST(Sweep, SearchesSchedulesByRungsAndTimesTheLast) {
  write_text(Workshop::folder() / "search.json", R"({"recipe": "recipe.json", "seeds": [1],
    "set": {"model.schedule": "4x4", "train.tokens": 1024, "train.sample_prompts": [], "train.save_steps": "none"},
    "search": {"candidates": 3, "rungs": 2, "factor": 2, "head_dim_step": 2}})");
  const auto plan = run({"sweep", "search.json", "--search", "schedules", "--plan"});
  EXPECT_EQ(plan.status, 0) << plan.err;
  EXPECT_NE(plan.out.find("rung2"), std::string::npos);
  EXPECT_NE(plan.out.find("each with 1 seed."), std::string::npos) << plan.out;
  const std::vector<std::string> words = {"sweep", "search.json", "--search", "schedules", "--timing-steps", "1"};
  const auto outcome = run(words);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("on the front"), std::string::npos);
  const auto runs_of = [](const char* rung) {
    std::map<std::string, fs::path> runs;
    for (const auto& entry : fs::directory_iterator(Workshop::folder() / "runs/search" / rung))
      if (fs::exists(entry.path() / "records.jsonl")) runs[entry.path().filename().string()] = entry.path();
    return runs;
  };
  const auto first = runs_of("rung1"), second = runs_of("rung2");
  ASSERT_GE(first.size(), 3u);
  EXPECT_EQ(second.size(), 1 + first.size() / 2);
  for (const auto& [name, folder] : second) {
    EXPECT_TRUE(first.contains(name)) << name;
    EXPECT_TRUE(fs::exists(folder / "timing.json")) << name;
  }
  auto again = words;
  again.push_back("--json");
  const auto lines = run(again);
  ASSERT_EQ(lines.status, 0) << lines.err;
  EXPECT_NE(lines.out.find("\"rung\":2"), std::string::npos) << lines.out;
  EXPECT_NE(lines.out.find("speed_ratio"), std::string::npos);
}

TEST(Sweep, SaysWhichRunDivergedWhereAndDoesNotRunItAgain) {
  write_text(Workshop::folder() / "diverges.json", R"({"recipe": "recipe.json", "seeds": [1],
    "set": {"train.tokens": 2048, "train.sample_prompts": [], "train.save_steps": "none"},
    "arms": {"good": {}, "bad": {"train.learning_rate": 1e30, "train.warmup_share": 0, "train.clip": 0}}})");
  const std::vector<std::string> words = {"sweep", "diverges.json", "--records", "kept"};
  const auto outcome = run(words);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("bad-seed1: "), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("finite loss"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.out.find("good"), std::string::npos);
  EXPECT_NE(outcome.out.find("bad diverged after"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find(", the first value that is not finite in "), std::string::npos) << outcome.out;
  const auto records = read_text(Workshop::folder() / "kept/bad-seed1/records.jsonl");
  EXPECT_NE(records.find("\"kind\":\"diverged\""), std::string::npos);
  EXPECT_NE(run({"sweep", "diverges.json", "--records", "kept", "--plan"}).out.find("bad-seed1   diverged"),
            std::string::npos);
  EXPECT_EQ(run(words).out, outcome.out);
  EXPECT_NE(outcome.err.find("2 runs, 1 diverged, 0 failed"), std::string::npos) << outcome.err;
  // If the run has since been resumed and has finished, the diverged copy does not hide that.
  const auto folder = Workshop::folder() / "runs/diverges/bad-seed1";
  auto text = read_text(folder / "records.jsonl");
  text.replace(text.find("\"kind\":\"diverged\""), 17, "\"kind\":\"end\"");
  write_text(folder / "records.jsonl", text);
  EXPECT_NE(run({"sweep", "diverges.json", "--records", "kept", "--plan"}).out.find("bad-seed1   finished"),
            std::string::npos);
  EXPECT_EQ(run(words).status, 0);
  EXPECT_EQ(read_text(Workshop::folder() / "kept/bad-seed1/records.jsonl"), text);
}

TEST(Sweep, WhoseBaselineDivergedIsShownAllTheSame) {
  write_text(Workshop::folder() / "bad_baseline.json", R"({"recipe": "recipe.json", "seeds": [1], "baseline": "bad",
    "set": {"train.tokens": 2048, "train.sample_prompts": [], "train.save_steps": "none"},
    "arms": {"good": {}, "bad": {"train.learning_rate": 1e30, "train.warmup_share": 0, "train.clip": 0}}})");
  const auto outcome = run({"sweep", "bad_baseline.json"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("bad diverged after"), std::string::npos) << outcome.out;
  EXPECT_EQ(run({"sweep", "bad_baseline.json", "--json"}).status, 0);
}

TEST(Sweep, SaysWhichRunFailedAndKeepsTheOthers) {
  write_text(Workshop::folder() / "fails.json", R"({"recipe": "recipe.json", "seeds": [1],
    "set": {"train.tokens": 2048, "train.sample_prompts": [], "train.save_steps": "none"},
    "arms": {"good": {}, "bad": {"init": ")" + trained() +
                                                    R"(", "model.ffn_width": 64}}})");
  const auto outcome = run({"sweep", "fails.json"});
  expect_sentence(outcome, 1, {"bad-seed1", "init: expected weights that fit"});
  EXPECT_NE(outcome.out.find("good"), std::string::npos);
}

TEST(Sweep, WithoutItsBaselineComparesNothing) {
  write_text(Workshop::folder() / "no_baseline.json", R"({"recipe": "recipe.json", "seeds": [1], "baseline": "bad",
    "set": {"train.tokens": 2048, "train.sample_prompts": [], "train.save_steps": "none"},
    "arms": {"good": {}, "bad": {"init": ")" + trained() + R"(", "model.ffn_width": 64}}})");
  const auto outcome = run({"sweep", "no_baseline.json", "--json"});
  expect_sentence(outcome, 1, {"bad-seed1", "init", "a run of the baseline bad"});
  EXPECT_EQ(outcome.out, "");
}

TEST(Sweep, RefusesWhatARunWouldRefuseBeforeAnyTrains) {
  write_text(Workshop::folder() / "refused.json", R"({"recipe": "recipe.json", "seeds": [1],
    "arms": {"good": {}, "bad": {"train.sample_prompts": [")" +
                                                      std::string(300, 'q') + R"("]}}})");
  expect_sentence(run({"sweep", "refused.json"}), 2, {"arm bad", "sample_prompts"});
  EXPECT_FALSE(fs::exists(Workshop::folder() / "runs/refused"));
}

TEST(Sweep, CopiesRecordsOfRunsThatWereDoneBeforeAndNamesArmsByItsFile) {
  const std::string arms = R"({"recipe": "recipe.json", "seeds": [1], "set": {"train.tokens": 512,
    "train.sample_prompts": [], "train.save_steps": "none"}, "arms": {"uniform": {"model.schedule": "2x2"}, )";
  write_text(Workshop::folder() / "before.json", arms + R"("progressive": {}}})");
  write_text(Workshop::folder() / "after.json", arms + R"("renamed": {}}})");
  ASSERT_EQ(run({"sweep", "before.json", "--out", "named"}).status, 0);
  const auto again =
      run({"sweep", "after.json", "--out", "named", "--records", "later", "--json", "--timing-steps", "1"});
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_NE(again.out.find(R"("arm":"renamed")"), std::string::npos) << again.out;
  EXPECT_NE(again.out.find(R"("baseline":"uniform")"), std::string::npos);
  for (const char* file : {"records.jsonl", "recipe.json", "timing.json"})
    EXPECT_TRUE(fs::exists(Workshop::folder() / "later/renamed-seed1" / file)) << file;
  EXPECT_FALSE(fs::exists(Workshop::folder() / "named/renamed-seed1"));
}

TEST(SweepInput, ThatIsWrongGetsASentence) {
  write_sweep("wrong.json", R"(, "baseline": "unifrom")");
  expect_sentence(run({"sweep", "wrong.json"}), 2, {"did you mean uniform?"});
  write_sweep("right.json", "");
  expect_sentence(run({"sweep", "right.json", "--set", "train.tokns=4"}), 2,
                  {"--set: expected a field of train", "tokens"});
  expect_sentence(run({"sweep", "right.json", "--set", "train.tokens"}), 2, {"FIELD=VALUE"});
  expect_sentence(run({"sweep", "right.json", "--jobs", "0"}), 2, {"--jobs"});
  expect_sentence(run({"sweep", "right.json", "--search", "schedule"}), 2, {"--search schedules"});
  expect_sentence(run({"sweep", "right.json", "--train.tokens", "20k"}), 2, {"write --set train.tokens=VALUE"});
  expect_sentence(run({"sweep", "right.json", "--train.tokens=20k"}), 2, {"write --set train.tokens=VALUE"});
  expect_sentence(run({"sweep", "right.json", "--set", "seed=7"}), 2, {"found seed"});
  expect_sentence(run({"sweep", "right.json", "--set", "init=nowhere", "--plan"}), 2, {"arm uniform", "nowhere"});
  expect_sentence(run({"sweep", "right.json", "--device", "gpu"}), 2, {"cpu, cuda or cuda:N"});
  expect_sentence(run({"sweep", "right.json", "--search", "schedules"}), 2, {"expected no arms"});
  write_text(Workshop::folder() / "none_fits.json",
             R"({"recipe": "recipe.json", "set": {"model.schedule": "1x2"}, "search": {"head_dim_step": 2}})");
  expect_sentence(run({"sweep", "none_fits.json", "--search", "schedules"}), 2, {"expected a schedule in the space"});
  expect_sentence(run({"sweep", "none.json"}), 2, {"none.json"});
  expect_sentence(run({"sweep"}), 2, {"FILE"});
  expect_sentence(run({"sweep", "recipe.json"}), 2, {"expected a known field"});
}

}  // namespace
}  // namespace prism
