// prism convert.
#include <gtest/gtest.h>

#include <filesystem>

#include "prism/core/files.h"
#include "tests/cli/commands.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

TEST(Convert, GraftsGatesThatChangeNothingAndCanBeTrained) {
  const auto outcome = run({"convert", trained(), "grafted", "--graft", "g2lu"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_CONTAINS(outcome.out, "inner gates included");
  EXPECT_CONTAINS(read_text(Workshop::folder() / "grafted/config.json"), "\"gate_bias\": true");
  const auto prompt = [](const std::string& model) {
    return run({"generate", model, "the", "--temperature", "0", "--max-new-tokens", "8", "--dtype", "float32"}).out;
  };
  EXPECT_FALSE(prompt("grafted").empty());
  EXPECT_EQ(prompt("grafted"), prompt(trained()));
  const auto more = run({"train", "--recipe", "recipe.json", "--init", "grafted", "--out", "more", "--threads", "1",
                         "--set", "model.ffn.kind=g2lu", "--set", "model.ffn.gate_bias=true", "--train.fixed",
                         R"(["*self_attn*", "*norm*", "*embed*", "*up_proj*", "*down_proj*"])"});
  EXPECT_EQ(more.status, 0) << more.err;
  fs::remove_all(Workshop::folder() / "more");
  fs::remove_all(Workshop::folder() / "grafted");
}

TEST(Convert, WritesACopyInAnotherDtype) {
  const auto folder = Workshop::folder();
  const auto perplexity = [](const std::string& model) {
    return parse_json(run({"eval", model, "text.txt", "--json", "--dtype", "float32"}).out, "eval")
        .at("token_perplexity")
        .get<double>();
  };
  for (const auto& [dtype, bytes] : {std::pair{"float32", 4}, {"bfloat16", 2}, {"float16", 2}}) {
    const auto outcome = run({"convert", trained(), "copy", "--dtype", dtype});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_CONTAINS(outcome.out, dtype);
    const auto config = read_json((folder / "copy/config.json").string());
    EXPECT_EQ(config.at("dtype"), dtype);
    EXPECT_EQ(config.at("torch_dtype"), dtype);
    const auto size = fs::file_size(folder / "copy/model.safetensors");
    const auto whole = fs::file_size(last_checkpoint() / "model.safetensors");
    EXPECT_NEAR(static_cast<double>(size) / static_cast<double>(whole), bytes / 4.0, 0.1) << dtype;
    EXPECT_NEAR(perplexity("copy") / perplexity(trained()), 1, 0.01) << dtype;
    fs::remove_all(folder / "copy");
  }
}

TEST(Convert, LengthensTheContext) {
  const auto context = [](const std::string& model, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"info", model, "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return parse_json(run(words).out, "info").at("context").get<int64_t>();
  };
  const int64_t longer = 2 * context(trained());
  const std::vector<std::string> yarn = {"--context", std::to_string(longer), "--rope-scaling", "yarn"};
  std::vector<std::string> words = {"convert", trained(), "longer"};
  words.insert(words.end(), yarn.begin(), yarn.end());
  const auto outcome = run(words);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(context("longer"), longer);
  EXPECT_EQ(context(trained(), yarn), longer);
  const auto read = [](const std::string& model, const std::vector<std::string>& more) {
    std::vector<std::string> asked = {"generate",         model, "the",    "--temperature", "0",
                                      "--max-new-tokens", "8",   "--json", "--dtype",       "float32"};
    asked.insert(asked.end(), more.begin(), more.end());
    return parse_json(run(asked).out, "generate").at("ids");
  };
  EXPECT_EQ(read("longer", {}), read(trained(), yarn));
  expect_sentence(run({"convert", trained(), "never", "--context", std::to_string(longer)}), 2, {"--context"});
  expect_sentence(run({"info", trained(), "--context", std::to_string(longer)}), 2, {"--context", "--rope-scaling"});
  EXPECT_FALSE(fs::exists(Workshop::folder() / "never"));
  fs::remove_all(Workshop::folder() / "longer");
}

TEST(Convert, WritesAGgufFile) {
  const auto folder = Workshop::folder();
  // GGUF has no head schedules.
  const auto even =
      run({"train", "--recipe", "recipe.json", "--out", "even", "--threads", "1", "--set", "model.schedule=2x2"});
  ASSERT_EQ(even.status, 0) << even.err;
  const auto prompt = [](const std::string& model) {
    return run({"generate", model, "the", "--temperature", "0", "--max-new-tokens", "8", "--dtype", "float32"}).out;
  };
  const auto outcome = run({"convert", "even", "made/copy.gguf"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_CONTAINS(outcome.out, "made/copy.gguf: ");
  EXPECT_CONTAINS(outcome.out, "float32");
  EXPECT_FALSE(prompt("even").empty());
  EXPECT_EQ(prompt("made/copy.gguf"), prompt("even"));
  ASSERT_EQ(run({"convert", "made/copy.gguf", "made/again.gguf"}).status, 0);
  EXPECT_EQ(prompt("made/again.gguf"), prompt("even"));
  ASSERT_EQ(run({"convert", "made/copy.gguf", "made/folder"}).status, 0);
  EXPECT_EQ(prompt("made/folder"), prompt("even"));
  for (const char* dtype : {"float16", "bfloat16", "q8_0"}) {
    const auto file = std::string("made/") + dtype + ".gguf";
    const auto smaller = run({"convert", "even", file, "--dtype", dtype});
    ASSERT_EQ(smaller.status, 0) << smaller.err;
    EXPECT_LT(fs::file_size(folder / file), fs::file_size(folder / "made/copy.gguf")) << dtype;
    EXPECT_FALSE(prompt(file).empty());
    EXPECT_EQ(smaller.out.find("float16 instead of q8_0, whose blocks of 32 weights") != std::string::npos,
              dtype == std::string("q8_0"))
        << smaller.out;
  }
  for (const char* scaling : {"yarn", "linear"}) {
    const auto file = std::string("made/") + scaling + ".gguf";
    const auto longer = run({"convert", "even", file, "--context", "64", "--rope-scaling", scaling});
    EXPECT_EQ(longer.status, 0) << longer.err;
    EXPECT_CONTAINS(run({"info", file}).out, "context 64");
  }
  expect_sentence(run({"convert", "even", "made/copy.gguf"}), 2, {"expected a free name for a new file"});
  expect_sentence(run({"convert", "even", "made/grafted.gguf", "--graft", "g2lu"}), 2,
                  {"expected a model that GGUF can express", "another kind than swiglu", "write a model folder"});
  expect_sentence(run({"convert", trained(), "made/schedule.gguf"}), 2, {"found layers of different numbers of heads"});
  expect_sentence(run({"convert", "even", "made/q8", "--dtype", "q8_0"}), 2, {"--dtype q8_0", ".gguf", "made/q8"});
  EXPECT_FALSE(fs::exists(folder / "made/grafted.gguf"));
  EXPECT_FALSE(fs::exists(folder / "made/q8"));
  expect_sentence(run({"convert", "nowhere", "untouched/copy.gguf"}), 2, {"found nothing"});
  EXPECT_FALSE(fs::exists(folder / "untouched"));
  for (const auto& entry : fs::directory_iterator(folder / "made"))
    EXPECT_EQ(entry.path().filename().string().find(".tmp"), std::string::npos) << entry.path();
  fs::remove_all(folder / "made");
  fs::remove_all(folder / "even");
}

TEST(Convert, RefusesWhatItCannotConvert) {
  expect_sentence(run({"convert", trained(), "x", "--dtype", "int8"}), 2, {"--dtype", "bfloat16", "int8"});
  expect_sentence(run({"convert", trained(), "x", "--graft", "moe"}), 2, {"--graft", "g2lu", "moe"});
  expect_sentence(run({"convert", "nowhere", "x", "--graft", "g2lu"}), 2, {"found nothing"});
  expect_sentence(run({"convert", trained(), trained(), "--graft", "g2lu"}), 2, {"expected a free name"});
  const auto folder = Workshop::folder();
  EXPECT_FALSE(fs::exists(folder / "x"));
  ASSERT_EQ(run({"convert", trained(), "once", "--graft", "g2lu"}).status, 0);
  expect_sentence(run({"convert", "once", "twice", "--graft", "g2lu"}), 2, {"found none in its layers"});
  fs::remove(folder / "once/model.safetensors");
  expect_sentence(run({"convert", "once", "twice", "--graft", "g2lu"}), 2, {});
  EXPECT_FALSE(fs::exists(folder / "twice"));
  for (const auto& entry : fs::directory_iterator(folder))
    EXPECT_EQ(entry.path().filename().string().find(".tmp"), std::string::npos) << entry.path();
  fs::remove_all(folder / "once");
}

}  // namespace
}  // namespace prism
