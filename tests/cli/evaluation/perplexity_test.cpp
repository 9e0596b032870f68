// Runs prism eval on texts as a user does.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "prism/core/fields.h"
#include "tests/cli/commands.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

TEST(Eval, ReportsPerplexitiesThatAgreeWithOneAnother) {
  const auto outcome = run({"eval", trained(), "--task", "perplexity", "text.txt", "--json", "--threads", "1"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = Json::parse(outcome.out);
  EXPECT_NE(outcome.out.find("window"), std::string::npos) << "the convention is printed with the figure";
  const auto number = [&](const char* name) { return json[name].get<double>(); };
  EXPECT_NEAR(number("token_perplexity"), std::exp(number("nats") / number("tokens")),
              1e-9 * number("token_perplexity"));
  EXPECT_NEAR(number("word_perplexity"), std::exp(number("nats") / number("words")), 1e-9 * number("word_perplexity"));
  EXPECT_NEAR(number("byte_perplexity"), std::exp(number("nats") / number("bytes")), 1e-9 * number("byte_perplexity"));
  EXPECT_NEAR(number("bits_per_byte"), number("nats") / number("bytes") / std::log(2.0), 1e-9);
  EXPECT_EQ(number("bytes"), static_cast<double>(fs::file_size(Workshop::folder() / "text.txt")));
  const auto text = run({"eval", trained(), "--task", "perplexity", "text.txt", "--threads", "1"});
  EXPECT_EQ(text.status, 0);
  EXPECT_NE(text.out.find("window"), std::string::npos);
}

TEST(Eval, ReadsThroughASelectorAndSaysWhatItKept) {
  const std::vector<std::string> words = {"eval", trained(), "text.txt", "--threads", "1", "--json"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), words.begin(), words.end());
    const auto outcome = run(more);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return Json::parse(outcome.out);
  };
  const auto dense = with({});
  EXPECT_EQ(dense["prefill"]["selector"], "dense");
  EXPECT_EQ(dense["prefill"]["density"], 1);
  EXPECT_FALSE(dense["prefill"].contains("attend_ms")) << "nothing was metered";
  EXPECT_FALSE(dense["prefill"].contains("layers")) << "every head kept everything";
  EXPECT_EQ(dense["rope_scaling"], "");
  EXPECT_EQ(dense["weights"], "file");
  const auto longer = with({"--context", "128", "--rope-scaling", "linear", "--weights", "float32"});
  EXPECT_EQ(longer["context"], 128);
  EXPECT_EQ(longer["rope_scaling"], "linear");
  EXPECT_EQ(longer["weights"], "float32");
  const auto all = with({"--prefill", "spectral", "--prefill-set", "p=1", "--prefill-chunk", "8"});
  EXPECT_NEAR(all["nats"].get<double>(), dense["nats"].get<double>(), 1e-2 * dense["nats"].get<double>());
  const auto less = with({"--prefill", "spectral", "--prefill-set", "block_size=32", "--prefill-set", "recent=1",
                          "--prefill-recall", "2"});
  EXPECT_LE(less["prefill"]["recall"].get<double>(), 1 + 1e-9);
  EXPECT_EQ(less["prefill"]["settings"]["block_size"], 32);
  EXPECT_GT(less["prefill"]["layers"][0]["heads"].size(), 0u);
  expect_sentence(run({"eval", trained(), "text.txt", "--prefill-set", "p=1"}), 2, {"--prefill SELECTOR", "p=1"});
  const auto text = run({"eval", trained(), "text.txt", "--threads", "1", "--prefill", "xattention"});
  EXPECT_NE(text.out.find("density"), std::string::npos) << text.out;

  expect_sentence(run({"eval", trained(), "text.txt", "--prefill", "spectrl"}), 2, {"spectral"});
  expect_sentence(run({"eval", trained(), "text.txt", "--prefill", "spectral", "--prefill-set", "q=1"}), 2, {"q", "p"});
  expect_sentence(run({"eval", trained(), "text.txt", "--prefill", "spectral", "--prefill-set", "p"}), 2,
                  {"--prefill-set: expected NAME=VALUE", "p=0.9"});
  expect_sentence(run({"eval", trained(), "text.txt", "--prefill", "spectral", "--prefill-set", "=1"}), 2,
                  {"--prefill-set: expected NAME=VALUE"});
  expect_sentence(run({"eval", trained(), "text.txt", "--prefill-recall", "1"}), 2, {"--prefill SELECTOR"});
  expect_sentence(run({"eval", trained(), "text.txt", "--prefill-chunk", "-1"}), 2, {"chunk", "-1"});
}

TEST(Eval, ScoresTheFirstDocumentsIfAskedTo) {
  const auto with = [&](const std::string& documents) {
    return Json::parse(
        run({"eval", trained(), "text.txt", "--separator", "\\n\\n", "--documents", documents, "--json"}).out);
  };
  const auto all = with("0"), three = with("3"), one = with("1");
  EXPECT_EQ(three["documents"], 3);
  EXPECT_EQ(one["documents"], 1);
  EXPECT_GT(all["documents"].get<int>(), 3);
  EXPECT_GT(three["tokens"].get<int>(), one["tokens"].get<int>());
  expect_sentence(run({"eval", trained(), "text.txt", "--documents", "-1"}), 2, {"document", "-1"});
}

TEST(SlowEval, AndGenerateLetCostsDecideThatAreKept) {
  const TemporaryFolder cache;
  ::setenv("PRISM_CACHE", cache.path().c_str(), 1);
  const auto evaluate = [&] {
    const auto outcome = run({"eval", trained(), "text.txt", "--threads", "1", "--prefill", "auto", "--json"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return Json::parse(outcome.out);
  };
  const auto first = evaluate(), second = evaluate();
  EXPECT_EQ(second["nats"], first["nats"]);
  EXPECT_EQ(second["prefill"]["density"], first["prefill"]["density"]);
  const auto kept = read_text(cache.path() / "prefill_cost.json");
  const auto generated = run({"generate", trained(), "The river", "--threads", "1", "--prefill", "auto"});
  EXPECT_EQ(generated.status, 0) << generated.err;
  EXPECT_EQ(generated.err.find("note:"), std::string::npos) << generated.err;
  EXPECT_EQ(read_text(cache.path() / "prefill_cost.json"), kept);
  ::unsetenv("PRISM_CACHE");
}

TEST(Eval, PairsTheDocumentsOfTwoModels) {
  const std::vector<std::string> words = {"eval",     trained() + "/checkpoints/weights-00000001",
                                          "text.txt", "--separator",
                                          "\\n\\n",   "--against",
                                          trained(),  "--threads",
                                          "1"};
  auto as_json = words;
  as_json.push_back("--json");
  const auto outcome = run(as_json);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto rows = lines_of(outcome);
  ASSERT_EQ(rows.size(), 3u);
  const double first = rows[0]["nats"].get<double>() / rows[0]["tokens"].get<double>(),
               second = rows[1]["nats"].get<double>() / rows[1]["tokens"].get<double>();
  EXPECT_NEAR(rows[2]["difference"].get<double>(), first - second, 1e-9);
  EXPECT_GT(rows[2]["low"].get<double>(), 0) << "the last weights predict better than the first";
  EXPECT_EQ(rows[2]["documents"], rows[0]["documents"]);
  EXPECT_NE(run(words).out.find("95% interval"), std::string::npos);
}

TEST(Eval, ComparesAModelWithItselfUnderTwoKindsOfAttention) {
  const std::vector<std::string> words = {"eval", trained(), "-", "--separator", "\\n\\n", "--threads", "1"};
  const auto text = read_text(Workshop::folder() / "text.txt");
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), words.begin(), words.end());
    auto outcome = run(more, text);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome;
  };
  const auto same = lines_of(with({"--against-prefill", "dense", "--json"}));
  ASSERT_EQ(same.size(), 3u);
  EXPECT_EQ(same[2]["difference"], 0);
  EXPECT_EQ(same[2]["divergence"]["p99"], 0);
  EXPECT_EQ(same[2]["divergence"]["tokens"], same[0]["tokens"]);
  // The context, 32, is one block.
  const std::vector<std::string> sparse = {"--context",         "128",           "--rope-scaling", "linear",
                                           "--prefill",         "sink_window",   "--prefill-set",  "window=1",
                                           "--prefill-set",     "block_size=32", "--prefill-set",  "sink=0",
                                           "--against-prefill", "dense"};
  const auto shown = with(sparse);
  for (const char* part : {"with dense attention", "sink_window, density", "KL(second||first)", "scored tokens: mean"})
    EXPECT_NE(shown.out.find(part), std::string::npos) << part << " in " << shown.out;
  auto as_json = sparse;
  as_json.emplace_back("--json");
  const auto rows = lines_of(with(as_json));
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_NEAR(rows[2]["difference"].get<double>(),
              (rows[0]["nats"].get<double>() - rows[1]["nats"].get<double>()) / rows[0]["tokens"].get<double>(), 1e-9);
  EXPECT_GT(rows[2]["divergence"]["mean"].get<double>(), 0);
  EXPECT_EQ(rows[0]["model"], rows[1]["model"]) << "attention tells them apart";
  write_text(Workshop::folder() / "both.jsonl", with(as_json).out);
  const auto report = run({"report", "--prefill", "both.jsonl", "--out", "both.html"});
  EXPECT_EQ(report.status, 0) << report.err;
  for (const char* part : {"sink_window", "dense", "0.00"})
    EXPECT_NE(report.out.find(part), std::string::npos) << part << " in " << report.out;
}

TEST(Eval, ResumesAtTheNextDocument) {
  const std::vector<std::string> words = {"eval",      trained(), "text.txt", "--separator", "\\n\\n",
                                          "--threads", "1",       "--out",    "documents",   "--json"};
  const auto whole = run(words);
  ASSERT_EQ(whole.status, 0) << whole.err;
  const auto folder = Workshop::folder() / "documents";
  const auto samples = read_text(folder / "samples_perplexity_prism.jsonl"),
             results = read_text(folder / "results_prism.json");
  const auto json = Json::parse(whole.out);
  EXPECT_EQ(Json::parse(results)["results"]["perplexity"]["token_perplexity,none"], json["token_perplexity"]);
  EXPECT_EQ(std::count(samples.begin(), samples.end(), '\n'), json["documents"].get<int64_t>());
  write_text(folder / "samples_perplexity_prism.jsonl", samples.substr(0, samples.size() / 2));
  const auto resumed = Json::parse(run(words).out);
  EXPECT_EQ(resumed["nats"], json["nats"]);
  EXPECT_EQ(read_text(folder / "samples_perplexity_prism.jsonl"), samples);
  EXPECT_EQ(read_text(folder / "results_prism.json"), results);
  auto other = words;
  other.insert(other.end(), {"--window", "32"});
  EXPECT_EQ(run(other).status, 0) << "the default";
  other.insert(other.end(), {"--stride", "4"});
  expect_sentence(run(other), 2, {"expected results of the same settings", "stride"});
}

TEST(EvalInput, ThatIsWrongGetsASentence) {
  write_text(Workshop::folder() / "empty.txt", "");
  write_text(Workshop::folder() / "binary.txt", "abc \xff\xfe def");
  expect_sentence(run({"eval", trained(), "--task", "perplexity", "empty.txt"}), 2, {"empty"});
  expect_sentence(run({"eval", trained(), "--task", "perplexity", "binary.txt"}), 2, {"UTF-8", "binary.txt"});
  expect_sentence(run({"eval", trained(), "--task", "perplexty", "text.txt"}), 2, {"perplexity"});
  expect_sentence(run({"eval", trained(), "--task", "perplexity", "none.txt"}), 2, {"none.txt"});
}

}  // namespace
}  // namespace prism
