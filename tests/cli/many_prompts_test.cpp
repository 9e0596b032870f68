// prism generate --prompts and --prompt-cache.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/cli/commands.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

std::string written(const std::string& name, const std::string& text) {
  std::ofstream(Workshop::folder() / name) << text;
  return name;
}

std::vector<std::string> generate_words(const std::vector<std::string>& more) {
  std::vector<std::string> words = {"generate",      trained(), "--max-new-tokens", "4",
                                    "--temperature", "0",       "--threads",        "1"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(ManyPrompts, AreContinuedAsEachAlone) {
  const std::string lines = R"({"prompt": "The river", "id": {"n": 7}})"
                            "\n\n"
                            R"({"prompt": "And", "max_new_tokens": 2})"
                            "\n"
                            R"({"prompt": "It", "temperature": 0.9, "seed": 5, "top_k": 0, "top_p": 1})"
                            "\n";
  const auto found = lines_of(run(generate_words({"--prompts", written("prompts.jsonl", lines)})));
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0]["id"]["n"], 7);
  EXPECT_FALSE(found[1].contains("id"));
  EXPECT_EQ(found[1]["new_tokens"], 2);
  const auto alone = [&](const std::vector<std::string>& words) {
    return lines_of(run(generate_words(words)))[0]["text"];
  };
  EXPECT_EQ(found[0]["text"], alone({"The river", "--json"}));
  EXPECT_EQ(found[1]["text"], lines_of(run({"generate", trained(), "And", "--json", "--max-new-tokens", "2",
                                            "--temperature", "0", "--threads", "1"}))[0]["text"]);
  EXPECT_EQ(found[2]["text"],
            lines_of(run({"generate", trained(), "It", "--json", "--max-new-tokens", "4", "--temperature", "0.9",
                          "--seed", "5", "--top-k", "0", "--top-p", "1", "--threads", "1"}))[0]["text"]);
  // One at a time, and from standard input.
  EXPECT_EQ(lines_of(run(generate_words({"--prompts", "-", "--parallel", "1"}), lines)), found);
}

TEST(ManyPrompts, ThatASignalCutsEndWithAFailure) {
  const TemporaryFolder own;
  write_text(own.path() / "two.jsonl", "{\"prompt\": \"It\", \"max_new_tokens\": 2}\n{\"prompt\": \"It\"}\n");
  const auto model = (Workshop::folder() / trained()).string();
  const pid_t child = start_prism({"generate", model, "--prompts", "two.jsonl", "--max-new-tokens", "1000000000",
                                   "--slide", "--ignore-eos", "--threads", "1"},
                                  own.path());
  ASSERT_TRUE(wait_until([&] { return !read_text(own.path() / "stdout.txt").empty(); })) << "the first has ended";
  ::kill(child, SIGTERM);
  const auto outcome = wait_for(child, own.path());
  EXPECT_EQ(outcome.status, 1);
  EXPECT_CONTAINS(outcome.err, "1 of 2 prompts");
  EXPECT_CONTAINS(outcome.err, ", interrupted");
  EXPECT_CONTAINS(outcome.out, "\"finish\":\"interrupted\"");
}

TEST(Generate, RefusesATextThatMemoryDoesNotHold) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer takes more addresses than the limit";
#endif
  const auto folder = Workshop::folder() / "vast";
  fs::copy(Workshop::folder() / last_checkpoint(), folder, fs::copy_options::recursive);
  auto config = Json::parse(read_text(folder / "config.json"));
  config["model"]["context"] = 1 << 24;
  write_text(folder / "config.json", config.dump());
  const auto limited = [](const std::string& tokens, const std::vector<std::string>& more) {
    std::vector<std::string> words = {"generate",  "vast", "It",           "--max-new-tokens", tokens,
                                      "--threads", "1",    "--ignore-eos", "--temperature",    "0"};
    words.insert(words.end(), more.begin(), more.end());
    return run_prism(words, Workshop::folder(), "", [] {
      const rlimit limit{1'000'000'000, 1'000'000'000};
      ::setrlimit(RLIMIT_AS, &limit);
    });
  };
  const std::vector<std::string> parts = {"expected keys and values of the text that fit into free memory, ",
                                          "lower --max-new-tokens."};
  expect_sentence(limited("16000000", {}), 2, parts);
  expect_sentence(limited("9223372036854775807", {"--slide"}), 2, parts);
  expect_sentence(limited("16000000", {"--chat", "--chat-template", written("t.jinja", "{{ messages[-1].content }}")}),
                  2, parts);
  EXPECT_EQ(limited("10", {}).status, 0);
  fs::remove_all(folder);
}

TEST(ManyPrompts, ThatAreWrongAreNamedByTheirLine) {
  const auto refused = [](const std::string& lines, const std::vector<std::string>& parts) {
    const auto outcome = run(generate_words({"--prompts", written("wrong.jsonl", lines)}));
    expect_sentence(outcome, 2, parts);
    EXPECT_EQ(outcome.out, "") << "nothing before all lines are checked";
  };
  const std::string good = "{\"prompt\": \"It\"}\n";
  refused("", {"wrong.jsonl", "a line for each prompt"});
  refused(good + "{\"prompt\": ", {"wrong.jsonl, line 2"});
  refused(good + "[1]", {"wrong.jsonl, line 2", "expected a JSON object with \"prompt\"; found array"});
  refused(good + "{}", {"wrong.jsonl, line 2", "found none in the object"});
  refused(good + R"({"promt": "It"})", {"wrong.jsonl, line 2", "promt"});
  refused(good + R"({"prompt": 3})", {"wrong.jsonl, line 2", "prompt", "text"});
  refused(good + R"({"prompt": "It", "tempratur": 1})", {"wrong.jsonl, line 2", "temperature"});
  refused(good + R"({"prompt": "It", "temperature": -1})", {"wrong.jsonl, line 2", "temperature"});
  refused(good + R"({"prompt": "It", "max_new_tokens": -1})", {"wrong.jsonl, line 2: max_new_tokens: expected"});
  refused(good + R"({"prompt": "It", "max_new_tokens": 100000})", {"wrong.jsonl, line 2", "100000"});
  refused(good + R"({"prompt": "It", "stop": [""]})", {"wrong.jsonl, line 2"});
  expect_sentence(run(generate_words({"--prompts", "none.jsonl"})), 2, {"none.jsonl"});
  const auto name = written("good.jsonl", good);
  expect_sentence(run(generate_words({"It", "--prompts", name})), 2, {"--prompts"});
  expect_sentence(run(generate_words({"--prompts", name, "--json"})), 2, {"--json"});
  expect_sentence(run(generate_words({"--prompts", name, "--prefill", "spectral", "--prefill-recall", "2"})), 2,
                  {"--prefill-recall"});
  expect_sentence(run(generate_words({"--prompts", name, "--parallel", "0"})), 2, {"--parallel"});
  expect_sentence(run(generate_words({"It", "--parallel", "2"})), 2, {"--prompts"});
}

TEST(PromptCache, IsWrittenOnceAndReusedByPromptsThatBeginAlike) {
  fs::remove(Workshop::folder() / "kept.cache");
  const auto with = [&](const std::string& prompt, const std::vector<std::string>& more = {}) {
    auto words = generate_words({prompt, "--prompt-cache", "kept.cache", "--json"});
    words.insert(words.end(), more.begin(), more.end());
    return lines_of(run(words))[0];
  };
  const auto alone = [&](const std::string& prompt) { return lines_of(run(generate_words({prompt, "--json"})))[0]; };
  EXPECT_EQ(with("The river")["ids"], alone("The river")["ids"]);
  const auto first = read_text(Workshop::folder() / "kept.cache");
  EXPECT_FALSE(first.empty());
  EXPECT_EQ(with("The river")["ids"], alone("The river")["ids"]);
  EXPECT_EQ(with("Another")["ids"], alone("Another")["ids"]);
  EXPECT_EQ(read_text(Workshop::folder() / "kept.cache"), first) << "neither adds to it";
  EXPECT_EQ(with("The river and the hill")["ids"], alone("The river and the hill")["ids"]);
  EXPECT_NE(read_text(Workshop::folder() / "kept.cache"), first) << "a prompt that goes on is kept instead";
  EXPECT_CONTAINS(run(generate_words({"Another", "--prompt-cache", "kept.cache"})).err,
                  "kept.cache holds another prompt");
  const std::vector<std::string> settings = {"The river", "--prefill", "spectral", "--prompt-cache", "set.cache"};
  fs::remove(Workshop::folder() / "set.cache");
  ASSERT_EQ(run(generate_words(settings)).status, 0);
  auto other = generate_words(settings);
  other.insert(other.end(), {"--prefill-set", "p=0.9"});
  expect_sentence(run(other), 2, {"with the same prefill; found p 0.95 instead of 0.9;"});
  auto chunks = generate_words(settings);
  chunks.insert(chunks.end(), {"--prefill-chunk", "128"});
  expect_sentence(run(chunks), 2, {"found the whole prompt instead of 128 tokens at once;"});
  EXPECT_GT(with("The river and the hill")["cached_tokens"].get<int64_t>(), 0);
  const auto chat =
      run({"chat", trained(), "--chat-template", written("t.jinja", "{{ messages[-1].content }}"), "--prompt-cache",
           "kept.cache", "--max-new-tokens", "3", "--temperature", "0", "--threads", "1"},
          "The river\n");
  EXPECT_EQ(chat.status, 0) << chat.err;
}

TEST(PromptCache, KeepsKeysAndValuesInInt8) {
  fs::remove(Workshop::folder() / "int8.cache");
  const auto ask = [](const std::vector<std::string>& more) {
    auto words = generate_words({"The river and the hill", "--json", "--cache-type", "int8"});
    words.insert(words.end(), more.begin(), more.end());
    return lines_of(run(words))[0];
  };
  const auto alone = ask({}), first = ask({"--prompt-cache", "int8.cache"}),
             again = ask({"--prompt-cache", "int8.cache"});
  EXPECT_EQ(first["ids"], alone["ids"]);
  EXPECT_EQ(again["ids"], alone["ids"]);
  EXPECT_GT(again["cached_tokens"].get<int64_t>(), 0);
  EXPECT_EQ(again["cache_type"], "int8");
}

TEST(PromptCache, ThatIsDamagedOrAnotherModelsIsRefused) {
  fs::remove(Workshop::folder() / "other.cache");
  const auto with = [&](const std::vector<std::string>& more) {
    auto words = generate_words({"The river", "--prompt-cache", "other.cache"});
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  };
  ASSERT_EQ(with({}).status, 0);
  const auto whole = read_text(Workshop::folder() / "other.cache");
  expect_sentence(with({"--context", "16"}), 2, {"other.cache", "with the same config", "--context"});
  expect_sentence(with({"--cache-type", "int8"}), 2, {"other.cache", "with the same cache, int8", "--cache-type"});
  auto nowhere = generate_words({"The river", "--prompt-cache", "nowhere/one.cache"});
  expect_sentence(run(nowhere), 2, {"expected a folder nowhere", "create it"});
  expect_sentence(with({"--prefill", "spectral"}), 2, {"with the same prefill; found dense instead of spectral"});
  expect_sentence(with({"--weights", "float32"}), 2, {"other.cache", "with the same weights"});
  auto changed = whole;
  changed[whole.size() - whole.size() / 4] ^= 1;
  written("other.cache", changed);
  expect_sentence(with({}), 2, {"other.cache", "the file is damaged"});
  written("other.cache", whole.substr(0, whole.size() / 2));
  expect_sentence(with({}), 2, {"other.cache"});
  written("other.cache", "no safetensors");
  expect_sentence(with({}), 2, {"other.cache"});
  fs::copy_file(last_checkpoint() / "model.safetensors", Workshop::folder() / "other.cache",
                fs::copy_options::overwrite_existing);
  expect_sentence(with({}), 2, {"other.cache", "that --prompt-cache wrote"});
}

}  // namespace
}  // namespace prism
