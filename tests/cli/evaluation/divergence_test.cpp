// Runs prism eval --task divergence as a user does.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/cli/classifiers.h"
#include "tests/cli/commands.h"

namespace prism {
namespace {

/// Products in bfloat16 are possible on every machine, packed weights are not.
Outcome divergence(std::vector<std::string> more) {
  std::vector<std::string> words = {"eval",      trained(), "text.txt", "--task", "divergence",
                                    "--threads", "1",       "--tokens", "500"};
  words.insert(words.end(), more.begin(), more.end());
  return run(words);
}

TEST(EvalDivergence, PrintsFiguresOfPromptsAndOfDecodedTokens) {
  const auto rows = lines_of(divergence({"--dtype", "bfloat16", "--json"}));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["task"], "divergence");
  EXPECT_EQ(rows[0]["tokens"], 499);
  EXPECT_EQ(rows[0]["window"], 32);
  for (const char* role : {"prompt", "decoded"}) {
    const auto& figures = rows[0][role];
    const auto number = [&](const char* name) { return figures[name].get<double>(); };
    EXPECT_GT(number("mean"), 1e-8) << role;
    EXPECT_LT(number("mean"), 0.01) << role;
    EXPECT_GT(number("standard_error"), 0);
    EXPECT_LT(number("median"), number("p90"));
    EXPECT_LT(number("p90"), number("p99"));
    EXPECT_LE(number("p99"), number("p99_9"));
    EXPECT_LE(number("p99_9"), number("maximum"));
    EXPECT_GT(number("same_top"), 0.9);
  }
  EXPECT_EQ(lines_of(divergence({"--dtype", "bfloat16", "--json"}))[0]["decoded"], rows[0]["decoded"]);
  const auto table = divergence({"--dtype", "bfloat16", "--window", "16", "--stride", "8", "--skip", "8"});
  EXPECT_EQ(table.status, 0) << table.err;
  for (const char* part : {"decoded", "99.9th percentile", "same top token", "windows of 16 tokens every 8"})
    EXPECT_CONTAINS(table.out, part);
}

TEST(EvalDivergence, ComparesWithAnotherModelInFloat32) {
  const auto first = trained() + "/checkpoints/weights-00000001";
  const auto rows = lines_of(divergence({"--against", first, "--dtype", "float32", "--json"}));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["reference"], first);
  EXPECT_GT(rows[0]["prompt"]["mean"].get<double>(), 0.01) << "training has changed the model";
  EXPECT_NEAR(rows[0]["prompt"]["mean"].get<double>(), rows[0]["decoded"]["mean"].get<double>(), 1e-4);
}

TEST(EvalDivergence, ReadsPromptsInChunksAndThroughASelector) {
  const auto chunks = divergence({"--dtype", "bfloat16", "--prefill-chunk", "8"});
  EXPECT_CONTAINS(chunks.out, "windows are read 8 tokens at a time");
  const auto selected =
      divergence({"--dtype", "float32", "--prefill", "sink_window", "--prefill-set", "block_size=32", "--json"});
  EXPECT_EQ(lines_of(selected)[0]["selector"], "sink_window");
}

TEST(EvalDivergence, MeasuresAnInt8Cache) {
  const std::vector<std::string> options = {"--dtype", "float32", "--weights", "float32", "--cache-type", "int8"};
  auto in_json = options;
  in_json.emplace_back("--json");
  const auto rows = lines_of(divergence(in_json));
  EXPECT_EQ(rows[0]["cache_type"], "int8");
  for (const char* role : {"prompt", "decoded"}) {
    EXPECT_GT(rows[0][role]["mean"].get<double>(), 1e-11) << role;
    EXPECT_LT(rows[0][role]["mean"].get<double>(), 1e-3) << role;
  }
  EXPECT_CONTAINS(divergence(options).out, "float32, cache in int8");
}

TEST(EvalDivergence, AnswersWrongInputWithASentence) {
  expect_sentence(divergence({"--dtype", "float32", "--weights", "float32"}), 2,
                  {"found float32 for both", "--dtype bfloat16"});
  expect_sentence(divergence({"--dtype", "bfloat16", "--window", "33"}), 2, {"[divergence]", "window of 1 to 32"});
  expect_sentence(divergence({"--dtype", "bfloat16", "--skip", "32"}), 2, {"change --skip"});
  expect_sentence(run({"eval", trained(), "text.txt", "--task", "divergence", "--dtype", "bfloat16", "--tokens", "-1"}),
                  2, {"0 or more tokens"});
  expect_sentence(divergence({"--split", "test"}), 2, {"--split", "belongs to classification"});
  expect_sentence(divergence({"--dtype", "bfloat16", "--prefill", "spectral", "--prefill-recall", "1"}), 2,
                  {"--prefill-recall"});
  expect_sentence(run({"eval", trained(), "text.txt", "--skip", "1"}), 2, {"--skip", "belongs to divergence"});
  write_text(Workshop::folder() / "short.txt", "");
  expect_sentence(run({"eval", trained(), "short.txt", "--task", "divergence", "--dtype", "bfloat16"}), 2,
                  {"[divergence]", "expected text; found none"});
  EXPECT_CONTAINS(run({"eval", "--help"}).out, "--task divergence");
}

TEST_F(ClassifierCommands, HaveNoDivergence) {
  expect_sentence(prism({"eval", "uniform", "text.txt", "--task", "divergence"}), 2,
                  {"expected a language model in uniform"});
}

TEST(EvalDivergence, StopsAtASignal) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += read_text(Workshop::folder() / "text.txt");
  const TemporaryFolder own;
  write_text(own.path() / "long.txt", text);
  const pid_t child = start_prism({"eval", (Workshop::folder() / trained()).string(), "long.txt", "--task",
                                   "divergence", "--dtype", "bfloat16", "--threads", "1"},
                                  own.path());
  ASSERT_TRUE(wait_until_caught(child, SIGINT));
  ::kill(child, SIGINT);
  expect_sentence(wait_for(child, own.path()), 1, {"[divergence] stopped by a signal"});
}

}  // namespace
}  // namespace prism
