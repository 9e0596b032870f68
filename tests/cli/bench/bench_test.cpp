// Runs prism bench as a user does: its figures, and that every wrong input gets one sentence.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "prism/core/fields.h"
#include "tests/cli/commands.h"
#include "tests/core/message_of.h"

namespace prism {
namespace {

using Json = nlohmann::ordered_json;

TEST(Bench, PrintsOneObjectAShapeWithWhatItMeasured) {
  const auto outcome =
      run({"bench", "attention", "--tokens", "32", "48", "--head-dims", "8", "--d-model", "16", "--passes", "forward",
           "forward_backward", "--dtypes", "f32", "--rounds", "1", "--threads", "1", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  std::istringstream lines(outcome.out);
  int rows = 0;
  for (std::string line; std::getline(lines, line); ++rows) {
    const auto row = Json::parse(line);
    EXPECT_EQ(row["bench"], "attention");
    EXPECT_EQ(row["dtype"], "float32") << "in full, though asked for as f32";
    EXPECT_EQ(row["heads"], 2);
    EXPECT_GT(row["prism_ms"].get<double>(), 0);
    EXPECT_NEAR(row["ratio"].get<double>(), row["peer_ms"].get<double>() / row["prism_ms"].get<double>(), 1e-9);
  }
  EXPECT_EQ(rows, 4);
  write_text(Workshop::folder() / "shapes.json", R"([{"batch": 2, "heads": 4, "kv_heads": 2, "tokens": 5, "keys": 19,
    "head_dim": 24, "lengths": "ragged"}])");
  EXPECT_EQ(run({"bench", "attention", "--shapes", "shapes.json", "--rounds", "1"}).status, 0);
  EXPECT_NE(run({"bench", "attention", "--tokens", "8", "--head-dims", "6", "--d-model", "6", "--rounds", "1"})
                .out.find("by the backend torch"),
            std::string::npos);
}

TEST(Bench, TimesAModelsPromptsAndDecoding) {
  const auto rows =
      lines_of(run({"bench", "model", trained(), "--prompt-tokens", "4", "8", "--new-tokens", "3", "--depth", "0", "2",
                    "--sequences", "1", "5", "--rounds", "1", "--threads", "1", "--json"}));
  const char* names[] = {"pp4", "pp8", "tg3", "tg3x5", "tg3@d2", "tg3x5@d2"};
  ASSERT_EQ(rows.size(), std::size(names));
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i]["name"], names[i]);
    EXPECT_NEAR(
        rows[i]["tokens_per_s"].get<double>(),
        rows[i]["sequences"].get<double>() * rows[i]["tokens"].get<double>() / rows[i]["ms"].get<double>() * 1e3,
        1e-6 * rows[i]["tokens_per_s"].get<double>());
    EXPECT_GT(rows[i]["limit_share"].get<double>(), 0);
  }
  EXPECT_GT(rows[1]["work"].get<double>(), rows[0]["work"].get<double>());
  EXPECT_GT(rows[4]["work"].get<double>(), rows[2]["work"].get<double>()) << "the cached keys and values are read";
  EXPECT_GT(rows[3]["work"].get<double>(), rows[2]["work"].get<double>());
  EXPECT_LT(rows[3]["work"].get<double>(), 5 * rows[2]["work"].get<double>()) << "the weights are read once";
  EXPECT_NE(
      run({"bench", "model", trained(), "--prompt-tokens", "4", "--rounds", "1", "--new-tokens", "0"}).out.find("pp4"),
      std::string::npos);
}

TEST(Bench, RefusesLengthsThatAModelDoesNotRead) {
  expect_sentence(run({"bench", "model", trained(), "--prompt-tokens", "100000"}), 2,
                  {"the model's context", "100000"});
  expect_sentence(run({"bench", "model", trained(), "--prompt-tokens", "4", "--new-tokens", "4", "--depth", "-3"}), 2,
                  {"found 4 after -3"});
  expect_sentence(run({"bench", "model", trained(), "--prompt-tokens", "0", "--new-tokens", "0"}), 2,
                  {"expected prompts to read or tokens to decode"});
  expect_sentence(run({"bench", "model", trained(), "--weights", "q4"}), 2, {"--weights", "q4", "file"});
  expect_sentence(
      run({"bench", "model", trained(), "--prompt-tokens", "4", "--new-tokens", "4", "--sequences", "1000000000"}), 2,
      {"--sequences: expected 1 to 65536; found 1000000000"});
  expect_sentence(run({"bench", "model", trained(), "--depth", "9223372036854775807"}), 2, {"the model's context"});
  expect_sentence(run({"bench", "model", trained(), "--prefill", "spectral", "--prefill-recall", "1"}), 2,
                  {"found --prefill-recall"});
  expect_sentence(run({"bench", "model", "nowhere"}), 2, {"nowhere"});
}

TEST(Bench, ComparesSelectorsOverAPrompt) {
  const auto outcome = run({"bench",
                            "prefill",
                            "--tokens",
                            "256",
                            "512",
                            "--selector",
                            "spectral:block_size=32",
                            "random:share=0.5,block_size=32",
                            "--heads",
                            "2",
                            "--kv-heads",
                            "1",
                            "--head-dim",
                            "16",
                            "--rounds",
                            "1",
                            "--threads",
                            "1",
                            "--plot",
                            "speed.svg",
                            "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  std::istringstream lines(outcome.out);
  std::vector<Json> rows;
  for (std::string line; std::getline(lines, line);) rows.push_back(Json::parse(line));
  ASSERT_EQ(rows.size(), 4u);
  for (const char* name : {"selector", "tokens", "head_dim", "density", "recall", "select_ms", "attend_ms", "dense_ms",
                           "sdpa_ms", "extra_bytes"})
    EXPECT_TRUE(rows[3].contains(name)) << name;
  EXPECT_EQ(rows[3]["selector"], "random");
  EXPECT_EQ(rows[3]["tokens"], 512);
  EXPECT_NE(read_text(Workshop::folder() / "speed.svg").find("</svg>"), std::string::npos);
  write_text(Workshop::folder() / "mix.json", R"({"head_dim": 16, "heads": [{"sink": 5}]})");
  EXPECT_EQ(run({"bench", "prefill", "--tokens", "64", "--mix", "mix.json", "--rounds", "1"}).status, 0);
  expect_sentence(run({"bench", "prefill", "--selector", "spectral:block_size=33"}), 2, {"33"});
  expect_sentence(run({"bench", "prefill", "--heads", "3"}), 2, {"kv_heads", "3"});
  expect_sentence(run({"bench", "prefill", "--tokens", "0"}), 2, {"tokens", "0"});
}

TEST(BenchInput, ThatIsWrongGetsASentence) {
  expect_sentence(run({"bench", "atention"}), 2, {"attention"});
  expect_sentence(run({"bench", "attention", "--head-dims", "7"}), 2, {"768", "7"});
  expect_sentence(run({"bench", "attention", "--dtypes", "bf17"}), 2, {"bfloat16"});
  expect_sentence(run({"bench", "attention", "--passes", "sideways"}), 2, {"forward_backward"});
  expect_sentence(run({"bench", "attention", "--tokens", "0"}), 2, {"tokens", "within 1-"});
  expect_sentence(run({"bench", "decode", "--keys", "999999999999"}), 2, {"keys", "within 1-"});
  expect_sentence(run({"bench", "decode", "--keys", "4", "--tokens", "5"}), 2, {"at least as many keys", "5", "4"});
  expect_sentence(run({"bench", "attention", "--kv-heads", "5", "--head-dims", "64"}), 2, {"divide 12 heads", "5"});
  expect_sentence(run({"bench", "attention", "--tokens", "1048576", "--keys", "16777216"}), 2, {"fit into memory"});
  write_text(Workshop::folder() / "shapes.json", R"([{"haeds": 4}])");
  expect_sentence(run({"bench", "attention", "--shapes", "shapes.json"}), 2, {"haeds", "heads"});
  ::setenv("PRISM_ISA", "mmx", 1);
  expect_sentence(run({"bench", "attention", "--tokens", "8", "--rounds", "1"}), 2, {"mmx", "avx2"});
  ::unsetenv("PRISM_ISA");
  expect_sentence(run({"bench", "training", "tiny", "smal"}), 2, {"did you mean small?"});
  expect_sentence(run({"bench", "training", "tiny", "--peer", "pytorch"}), 2, {"libtorch, none or a case"});
  expect_sentence(run({"bench", "training", "tiny", "--dtypes", "int8", "--peer", "none"}), 2,
                  {"--dtypes: expected", "int8", "bfloat16"});
}

TEST(BenchBudgets, PrintsWhatIsSavedOrASentence) {
  const auto bench = [](std::vector<std::string> words) {
    words.insert(words.begin(), {"bench", "budgets"});
    words.insert(words.end(), {"--rounds", "1", "--threads", "1"});
    return run(words);
  };
  const auto outcome = bench({"--d-models", "32", "--heads", "4", "--tokens", "8", "--batch", "2", "--shares", "0.5",
                              "1", "--dtypes", "float32", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto first = nlohmann::json::parse(outcome.out.substr(0, outcome.out.find('\n')));
  EXPECT_EQ(first["kept"], 2);
  // 2 texts of 8 tokens: products 2 * 8 * 4 * 32^2 + 4 * 8^2 * 32, networks 2 * 32^2 + 2 * 32 + 2 * 32 * 4.
  const double plain = 2 * 8 * 4 * 1024 + 4 * 64 * 32, networks = 2 * 1024 + 2 * 32 + 2 * 32 * 4;
  EXPECT_NEAR(first["flop_saving"].get<double>(), 1 - (plain / 2 + networks) / plain, 1e-9);
  expect_sentence(bench({"--shares", "0.5", "2"}), 2, {"share of heads above 0 and at most 1", "found 2"});
  expect_sentence(bench({"--dtypes", "int8"}), 2, {"--dtypes: expected", "int8"});
  expect_sentence(bench({"--heads", "7"}), 2, {"divide d_model = 768"});
  expect_sentence(bench({"--batch", "1048576", "--tokens", "1048576"}), 2, {"at most 2147483648 values"});
  EXPECT_EQ(bench({"--shares", "0.5", "2"}).out, "");
}

}  // namespace
}  // namespace prism
