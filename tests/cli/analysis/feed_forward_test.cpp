// prism analyse weights, gates and twins, bench feed-forward, and the logits of capture.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/cli/analysis/analyse.h"

namespace prism {
namespace {

std::string mirrored_run() {
  return run_with("mirrored", {"--model.schedule", "2x5", "--model.mirror_middle", "1", "--model.ffn.kind", "g2lu"});
}

TEST(AnalyseFeedForward, IsShownAsTablesAndLinesThatAReportReads) {
  const auto model = mirrored_run();
  const auto weights = run({"analyse", "weights", model, "--json"});
  EXPECT_EQ(lines_of(weights).size(), 5u * 4);
  const auto gates = analyse({"gates", model, "--data", "data", "--sequences", "4", "--json"});
  const auto layers = lines_of(gates);
  ASSERT_EQ(layers.size(), 5u);
  for (const auto& layer : layers) EXPECT_GT(layer["bands"].get<double>(), 0.5);
  const auto twins = analyse({"twins", model, "--data", "data", "--sequences", "4", "--json"});
  const auto pairs = lines_of(twins);
  ASSERT_EQ(pairs.size(), 3u);
  EXPECT_EQ(pairs[0]["owner"], 1);
  EXPECT_GT(pairs[2]["permuted_losses"][0].get<double>(), 0);
  write_text(Workshop::folder() / "feed_forward.jsonl", weights.out + gates.out + twins.out);
  const auto report =
      run({"report", "--analysis", "feed_forward.jsonl", "--out", "feed_forward.html", "--figures", "ff"});
  ASSERT_EQ(report.status, 0) << report.err;
  for (const char* part : {"inner_gate_proj", "shares with", "closed, %", "CKA", "over 1 way"})
    EXPECT_CONTAINS(report.out, part);
  EXPECT_TRUE(std::filesystem::exists(Workshop::folder() / "ff/stable-ranks.svg"));
  for (const char* kind : {"weights", "gates", "twins"}) {
    const auto table =
        kind == std::string("weights") ? run({"analyse", kind, model}) : analyse({kind, model, "text.txt"});
    EXPECT_EQ(table.status, 0) << table.err;
    EXPECT_CONTAINS(table.out, "Layers count from 0");
  }
}

TEST(AnalyseFeedForward, AnswersModelsWithoutWhatItMeasures) {
  expect_sentence(analyse({"twins", trained(), "text.txt"}), 2, {"mirror_of"});
  const auto relu = run_with("relu", {"--model.ffn.kind", "relu"});
  expect_sentence(analyse({"gates", relu, "text.txt"}), 2, {"swiglu or g2lu"});
  expect_sentence(run({"analyse", "weights", "nowhere"}), 2, {"nowhere"});
  expect_sentence(run({"analyse", "weights", trained(), "text.txt"}), 2, {"text.txt"});
}

TEST(AnalyseCapture, SavesTokensAndLogitsIfAskedTo) {
  ASSERT_EQ(analyse({"capture", trained(), "text.txt", "--tokens", "9", "--layers", "0", "--logits", "--out", "logits"})
                .status,
            0);
  const auto [header, data] = read_safetensors("logits/logits.safetensors");
  EXPECT_EQ(header["tokens"]["shape"], Json({1, 9}));
  EXPECT_EQ(header["logits"]["shape"], Json({1, 9, 300}));
  std::vector<float> values(size_t{9} * 300);
  std::memcpy(values.data(), data.data() + header["logits"]["data_offsets"][0].get<size_t>(),
              values.size() * sizeof(float));
  for (const float value : values) EXPECT_TRUE(std::isfinite(value));
  EXPECT_NE(values.front(), values.back());
}

TEST(BenchFeedForward, PrintsALineForEachKindOrASentence) {
  const std::vector<std::string> small = {"bench",    "feed-forward", "--d-model", "32", "--width",   "48",
                                          "--tokens", "64",           "--rounds",  "2",  "--threads", "1",
                                          "--dtypes", "float32"};
  auto words = small;
  words.insert(words.end(), {"--json", "--shares"});
  const auto rows = lines_of(run(words));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["ratio"], 1);
  EXPECT_EQ(rows[1]["kind"], "g2lu");
  EXPECT_GT(rows[1]["both_ms"].get<double>(), rows[1]["forward_ms"].get<double>());
  words = small;
  words.insert(words.end(), {"--kinds", "swiglu", "moe"});
  expect_sentence(run(words), 2, {"moe", "swiglu"});
  expect_sentence(run({"bench", "feed-forward", "--width", "0"}), 2, {"--width", "0"});
}

}  // namespace
}  // namespace prism
