// Runs prism analyse as a user does: checks its tables, JSON and pictures, and that every wrong input gets one
// sentence.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/cli/analysis/analyse.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

TEST(Analyse, WithoutAKindListsThemAndAnswersAnUnknownOneWithTheNearest) {
  const auto outcome = run({"analyse"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.out.find("\n  attention-distance  how many tokens back"), std::string::npos) << outcome.out;
  EXPECT_EQ(run({"analyse", "--help"}).status, 0);
  expect_sentence(run({"analyse", "atention-distance"}), 2, {"did you mean attention-distance?"});
}

TEST(AnalyseSpectrum, ShowsTheZonesOfEveryHeadAndDrawsOne) {
  const std::string model = prism_seed("1");
  const auto json = run({"analyse", "spectrum", model, "text.txt", "--block-size", "8", "--json", "--figures",
                         "spectrum", "--threads", "1"});
  const auto heads = lines_of(json);
  ASSERT_GE(heads.size(), 3u);
  for (const auto& head : heads) {
    ASSERT_EQ(head["zones"].size(), 4u);
    const auto& full = head["zones"][3];
    EXPECT_GT(full["q"].get<double>(), 0);
    EXPECT_LE(full["q_pooled"].get<double>(), full["q"].get<double>() * (1 + 1e-6));
    EXPECT_EQ(head["pairs"].size(), full["pairs"].get<size_t>());
    EXPECT_LE(head["pairs"][0]["gain"].get<double>(), 1);
  }
  for (const char* name : {"gain", "energy", "high", "low", "full"}) {
    const std::string svg = read_text(Workshop::folder() / "spectrum" / (std::string(name) + ".svg"));
    EXPECT_NE(svg.find("</svg>"), std::string::npos) << name;
  }
  const auto table = run({"analyse", "spectrum", model, "text.txt", "--tokens", "16", "--threads", "1"});
  EXPECT_NE(table.out.find("dead q"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find(" → "), std::string::npos);
  EXPECT_NE(table.out.find("Input: text.txt, 1 sequence of 16 tokens, blocks of 128 tokens."), std::string::npos);
  write_text(Workshop::folder() / "spectrum.jsonl", json.out);
  const auto report = run({"report", "--analysis", "spectrum.jsonl", "--out", "spectrum.html", "--figures", "pairs"});
  ASSERT_EQ(report.status, 0) << report.err;
  EXPECT_NE(report.out.find("dead q"), std::string::npos) << report.out;
  EXPECT_NE(read_text(Workshop::folder() / "spectrum.html").find("mean over the heads of layer 1"), std::string::npos);
  for (const char* name : {"gain", "energy-layer0", "energy-layer1"})
    EXPECT_TRUE(fs::exists(Workshop::folder() / "pairs" / (std::string(name) + ".svg"))) << name;
}

TEST(AnalyseSpectrum, AnswersWrongInputWithASentence) {
  const std::string model = prism_seed("1");
  expect_sentence(run({"analyse", "spectrum", model}), 2, {"FILE"});
  expect_sentence(run({"analyse", "spectrum", model, "text.txt", "--rotary-base", "500"}), 2,
                  {"--rotary", "leave it out"});
  expect_sentence(run({"analyse", "spectrum", model, "text.txt", "--tokens", "100000"}), 2, {"100000", "context"});
  expect_sentence(run({"analyse", "spectrum", model, "text.txt", "--layer", "9", "--figures", "x"}), 2,
                  {"--layer", "9"});
  expect_sentence(run({"analyse", "spectrum", model, "text.txt", "--head", "-1", "--figures", "x"}), 2,
                  {"--head", "-1"});
  for (const char* option : {"--layer", "--head"})
    expect_sentence(run({"analyse", "spectrum", model, "text.txt", option, "1"}), 2,
                    {std::string("expected --figures with ") + option + "; found none"});
  expect_sentence(run({"analyse", "spectrum", "nowhere", "text.txt"}), 2, {"nowhere"});
  expect_sentence(run({"analyse", "spectrum", "text.txt"}), 2, {"text.txt"});
}

TEST(AnalyseEntropy, IsShownAsATableAsLinesAndAsAPictureThatTheReportShowsToo) {
  const auto table = analyse({"entropy", trained(), "--data", "data", "--sequences", "4", "--figures", "entropy"});
  ASSERT_EQ(table.status, 0) << table.err;
  EXPECT_NE(table.out.find("in nats"), std::string::npos) << table.out;
  EXPECT_NE(read_text(Workshop::folder() / "entropy/entropy.svg").find("</svg>"), std::string::npos);
  const auto json = analyse({"entropy", trained(), "--data", "data", "--sequences", "4", "--json"});
  const auto lines = lines_of(json);
  ASSERT_EQ(lines.size(), 2u);
  // The bound for 32 tokens: every query spreads its attention evenly over all keys that it sees.
  double most = 0;
  for (int t = 1; t <= 32; ++t) most += std::log(t) / 32;
  for (const auto& line : lines)
    for (const auto& entropy : line["head_entropies"]) {
      EXPECT_GT(entropy.get<double>(), 0);
      EXPECT_LE(entropy.get<double>(), most * (1 + 1e-6));
    }
  EXPECT_EQ(lines[0]["reading"], "data (valid), 4 sequences of 32 tokens");
  write_text(Workshop::folder() / "entropy.jsonl", json.out);
  const auto report = run({"report", trained(), "--analysis", "entropy.jsonl", "--out", "looked.html", "--markdown",
                           "looked.md", "--figures", "looked"});
  ASSERT_EQ(report.status, 0) << report.err;
  const std::string page = read_text(Workshop::folder() / "looked.html");
  for (const char* part : {"data-tab=\"Attention\"", "data-tab=\"Diagnostics\"", "Inside models", "class=\"heat\""})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  EXPECT_NE(read_text(Workshop::folder() / "looked.md").find("looked/entropy.svg"), std::string::npos);
  EXPECT_TRUE(fs::exists(Workshop::folder() / "looked/entropy.svg"));
  EXPECT_TRUE(fs::exists(Workshop::folder() / "looked/entropy-layers.svg"));
  const auto alone = run({"report", "--analysis", "entropy.jsonl", "--out", "alone.html"});
  EXPECT_EQ(alone.status, 0) << alone.err;
  EXPECT_NE(alone.out.find("in nats"), std::string::npos);
}

TEST(AnalyseHeads, GivesSharesOfEveryHead) {
  const auto lines = lines_of(analyse({"heads", trained(), "text.txt", "--json"}));
  ASSERT_EQ(lines.size(), 3u);
  for (const auto& line : lines)
    for (const char* kind : {"previous", "first", "self", "same", "punctuation", "induction"}) {
      EXPECT_GE(line[kind].get<double>(), 0) << kind;
      EXPECT_LE(line[kind].get<double>(), 1 + 1e-6) << kind;
    }
  EXPECT_EQ(lines[2]["layer"], 1);
  const auto table = analyse({"heads", trained(), "--data", "data", "--figures", "heads"});
  EXPECT_NE(table.out.find("induction"), std::string::npos) << table.err;
  EXPECT_TRUE(fs::exists(Workshop::folder() / "heads/heads-previous.svg"));
}

TEST(AnalyseNormsAndGradients, AreThoseOfTheModel) {
  const auto norms = lines_of(analyse({"norms", trained(), "--data", "data", "--sequences", "3", "--json"}));
  ASSERT_EQ(norms.size(), 3u);
  for (const auto& line : norms) EXPECT_GT(line["residual_rms"].get<double>(), 0);
  const auto gradients =
      lines_of(analyse({"gradients", trained(), "--data", "data", "--sequences", "4", "--dtype", "float32", "--json"}));
  ASSERT_GT(gradients.size(), 5u);
  for (const auto& line : gradients) {
    EXPECT_GT(line["gradient"].get<double>(), 0) << line;
    EXPECT_GT(line["weight"].get<double>(), 0) << line;
  }
  EXPECT_FALSE(gradients.front().contains("layer")) << "the embedding";
  const auto in_layer = std::find_if(gradients.begin(), gradients.end(),
                                     [](const auto& line) { return line.value("part", "") == "self_attn.k_proj"; });
  ASSERT_NE(in_layer, gradients.end());
  EXPECT_EQ((*in_layer)["layer"], 0);
  EXPECT_EQ((*in_layer)["name"], "model.layers.0.self_attn.k_proj.weight");
  // A text works too, as a single window.
  EXPECT_EQ(analyse({"gradients", trained(), "--text", "It was the best of times."}).status, 0);
  EXPECT_NE(analyse({"norms", trained(), "text.txt"}).out.find("LM head"), std::string::npos);
}

TEST(AnalyseMaps, DrawsTheWordsOfATextForChosenHeads) {
  const auto outcome =
      analyse({"maps", trained(), "--text", "The cat <b>.", "--layers", "1", "--heads", "0-1", "--figures", "maps"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const std::string svg = read_text(Workshop::folder() / "maps/map-layer1-head1.svg");
  EXPECT_NE(svg.find("&lt;"), std::string::npos);
  EXPECT_FALSE(fs::exists(Workshop::folder() / "maps/map-layer0-head0.svg"));
  const auto lines = lines_of(analyse({"maps", trained(), "text.txt", "--tokens", "5", "--json"}));
  ASSERT_EQ(lines.size(), 3u);
  ASSERT_EQ(lines[0]["weights"].size(), 5u);
  for (const auto& line : lines)
    for (const auto& row : line["weights"]) {
      double sum = 0;
      for (const auto& weight : row) sum += weight.get<double>();
      EXPECT_NEAR(sum, 1, 1e-5);
    }
  write_text(Workshop::folder() / "maps.jsonl", lines[0].dump() + "\n");
  EXPECT_EQ(run({"report", "--analysis", "maps.jsonl", "--out", "maps.html"}).status, 0);
}

TEST(AnalyseCapture, WritesWhatAttendReads) {
  const auto outcome = analyse({"capture", trained(), "text.txt", "--layers", "0,1", "--out", "captured"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const std::string file = "captured/layer1.safetensors";
  EXPECT_NE(outcome.out.find(file), std::string::npos);
  const auto attended = run({"attend", file, "--selector", "dense", "--json", "--threads", "1"});
  EXPECT_EQ(attended.status, 0) << attended.err;
  EXPECT_EQ(analyse({"spectrum", file, "--block-size", "8"}).status, 0);
}

TEST(AnalyseCapture, OfHeadsThatDoNotTurnIsNotTakenForOneOfHeadsThatDo) {
  const auto model = run_with("still", {"--model.rotary.kind", "none", "--model.learned_positions", "true"});
  ASSERT_EQ(analyse({"capture", model, "text.txt", "--out", "still-captured"}).status, 0);
  const std::string file = "still-captured/layer0.safetensors";
  expect_sentence(analyse({"spectrum", model, "text.txt"}), 2, {"layers with a rotary encoding", "layer 0"});
  expect_sentence(analyse({"spectrum", file, "--block-size", "8"}), 2, {"layers with a rotary encoding", "layer 0"});
  expect_sentence(run({"attend", file, "--selector", "spectral"}), 2, {"at least one rotary pair", "another selector"});
  EXPECT_EQ(run({"attend", file, "--selector", "mean_pooling", "--json", "--threads", "1"}).status, 0);
}

/// Overwrites a parameter with NaN in every checkpoint of a run.
void ruin_weights(const fs::path& run_folder, const std::string& parameter) {
  for (const auto& entry : fs::recursive_directory_iterator(run_folder)) {
    if (entry.path().filename() != "model.safetensors") continue;
    std::string bytes = read_text(entry.path());
    uint64_t header = 0;
    std::memcpy(&header, bytes.data(), sizeof(header));
    const Json tensors = Json::parse(bytes.substr(sizeof(header), header));
    const auto& place = tensors.at(parameter).at("data_offsets");
    const size_t first = place[0], end = place[1];
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(sizeof(header) + header + first), end - first, '\xff');
    write_text(entry.path(), bytes);
  }
}

TEST(AnalyseInput, ThatIsWrongGetsASentence) {
  const std::string& model = trained();
  for (const std::vector<std::string>& option : {std::vector<std::string>{"--split", "train"},
                                                 {"--sequences", "4"},
                                                 {"--document-mask"},
                                                 {"--no-document-mask"}}) {
    std::vector<std::string> words = {"heads", model, "text.txt"};
    words.insert(words.end(), option.begin(), option.end());
    expect_sentence(analyse(words), 2, {"expected " + option[0] + " only with --data; found it with FILE"});
  }
  write_text(Workshop::folder() / "bytes.txt", "one \xff two");
  expect_sentence(analyse({"entropy", model, "bytes.txt"}), 2, {"0xFF", "--invalid-utf8"});
  EXPECT_EQ(analyse({"entropy", model, "bytes.txt", "--invalid-utf8", "replace"}).status, 0);
  expect_sentence(analyse({"entropy", model, "--text", "one \xff two"}), 2, {"--text", "0xFF", "offset 4"});
  for (const auto& [parameter, place] :
       {std::pair{"model.layers.0.self_attn.q_proj.weight", "layer 0"}, std::pair{"model.norm.weight", "the logits"}}) {
    fs::remove_all(Workshop::folder() / "ruined");
    fs::copy(Workshop::folder() / model, Workshop::folder() / "ruined", fs::copy_options::recursive);
    ruin_weights(Workshop::folder() / "ruined", parameter);
    for (const char* kind : {"entropy", "gradients", "heads", "norms"})
      expect_sentence(analyse({kind, "ruined", "text.txt"}), 2, {"finite", place, "checkpoint"});
  }
  expect_sentence(analyse({"entropy", model}), 2, {"FILE, --text or --data", "none"});
  expect_sentence(analyse({"entropy", model, "text.txt", "--data", "data"}), 2, {"several"});
  expect_sentence(analyse({"entropy", "nowhere", "text.txt"}), 2, {"nowhere"});
  expect_sentence(analyse({"norms", model, "absent.txt"}), 2, {"absent.txt"});
  expect_sentence(analyse({"heads", model, "text.txt", "--tokens", "33"}), 2, {"--tokens", "1 to 32", "33"});
  std::string long_text;
  for (int i = 0; i < 60; ++i) long_text += "word ";
  expect_sentence(analyse({"maps", model, "--text", long_text, "--figures", "x"}), 2, {"--text", "at most 32"});
  expect_sentence(analyse({"maps", model, "--text", "a b", "--layers", "2", "--figures", "x"}), 2,
                  {"--layers", "from 0 to 1", "found 2"});
  expect_sentence(analyse({"maps", model, "--text", "a b", "--heads", "0,7", "--figures", "x"}), 2,
                  {"--heads of layer 0", "7"});
  expect_sentence(analyse({"maps", model, "--text", "a b", "--layers", "1-", "--figures", "x"}), 2, {"1-"});
  expect_sentence(analyse({"maps", model, "--text", "a b"}), 2, {"--figures", "--json"});
  expect_sentence(analyse({"capture", model, "text.txt"}), 2, {"--out"});
  expect_sentence(analyse({"capture", model, "text.txt", "--layers", "x", "--out", "y"}), 2, {"\"x\""});
  expect_sentence(analyse({"gradients", model, "--data", "nowhere"}), 2, {"nowhere"});
  expect_sentence(run({"report", "--analysis", "text.txt", "--out", "r.html"}), 2, {"text.txt"});
  write_text(Workshop::folder() / "other.jsonl", R"({"analysis":"attention-distance","kind":"layer","layer":0})"
                                                 "\n");
  expect_sentence(run({"report", "--analysis", "other.jsonl", "--out", "r.html"}), 2,
                  {"other.jsonl, line 1", "lacks a field of its analysis", "wrong type", "correct it"});
  expect_sentence(run({"report", "--analysis", "absent.jsonl", "--out", "r.html"}), 2, {"absent.jsonl"});
  for (const char* kind : {"capture", "entropy", "gradients", "heads", "maps", "norms"}) {
    const auto help = run({"analyse", kind, "--help"});
    EXPECT_EQ(help.status, 0);
    EXPECT_NE(help.out.find(std::string("prism analyse ") + kind + " runs/"), std::string::npos) << help.out;
  }
}

}  // namespace
}  // namespace prism
