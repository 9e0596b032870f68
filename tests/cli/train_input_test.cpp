// Wrong input of prism train, folders and files that cannot be used, and resuming: every refusal is one sentence.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <map>
#include <nlohmann/json.hpp>

#include "prism/core/fields.h"
#include "prism/core/machine.h"
#include "tests/cli/commands.h"

namespace prism {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

TEST(TrainInput, ThatIsWrongGetsASentence) {
  const auto train = [](std::vector<std::string> more) {
    std::vector<std::string> words = {"train", "--recipe", "recipe.json", "--out", "never"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  };
  expect_sentence(train({"--train.learning_rat", "1"}), 2, {"did you mean --train.learning_rate?"});
  expect_sentence(train({"--set", "model.layers[7].heads=1"}), 2, {"0 to 1", "found 7;"});
  expect_sentence(train({"--train.tokens", "many"}), 2, {"train.tokens", "whole number"});
  expect_sentence(train({"--train.tokens"}), 2, {"--train.tokens"});
  expect_sentence(train({"--train.tokens", "0"}), 2, {"train.tokens", "at least 1"});
  expect_sentence(train({"--train.tokens", "1000000000000000000"}), 2, {"train.tokens", "at most 1125899906842624"});
  expect_sentence(train({"--train.save_steps", "often"}), 2, {"save_steps"});
  expect_sentence(train({"--train.dtype", "float8"}), 2, {"float8"});
  expect_sentence(train({"--train.sample_prompts", "[\"" + std::string(300, 'q') + "\"]"}), 2,
                  {"train.sample_prompts", "model.context, 32 tokens"});
  expect_sentence(train({"--train.sample_temperature", "-1"}), 2, {"sample_temperature"});
  expect_sentence(train({"--train.sample_temperature", "[0.5,-1]"}), 2, {"sample_temperature", "-1"});
  expect_sentence(train({"--train.sample_temperature", "[]"}), 2, {"sample_temperature", "empty"});
  expect_sentence(train({"--train.sample_temperature", "warm"}), 2, {"sample_temperature", "warm"});
  expect_sentence(train({"--train.batch_rows", "1000000000000"}), 2, {"batch_rows"});
  expect_sentence(train({"--train.save_steps", "[0]"}), 2, {"save_steps"});
  expect_sentence(train({"--train.batch_rows", "1000"}), 2, {"at most train.tokens"});
  expect_sentence(train({"--model.d_model", "1000000000000"}), 2, {"d_model"});
  expect_sentence(train({"--model.layers[0].heads", "0"}), 2, {"layer 0", "at least 1 head"});
  expect_sentence(train({"--model.schedule", "3x1,2x1"}), 2, {"divide d_model = 32; found 3", "2 and 4"});
  expect_sentence(train({"--model.layers[0].head_dim", "16", "--model.layers[1].heads", "5"}), 2,
                  {"layer 1", "found 5"});
  expect_sentence(train({"--model.layers[0].head_dim", "16000000"}), 2, {"memory", "smaller"});
  expect_sentence(train({"--model.layers[1].head_dim", "16000000"}), 2, {"layer 1", "total width"});
  expect_sentence(train({"--model.schedule", "2x1,1x1"}), 2, {"at least the 2 heads of layer 0", "allow_any"});
  expect_sentence(train({"--model.vocab_size", "100"}), 2, {"vocab_size", "300"});
  expect_sentence(train({"--model.context", "100000"}), 2, {"context"});
  expect_sentence(train({"--data.folder", "nowhere"}), 2, {"nowhere", "prism tokenize"});
  expect_sentence(train({"--data.folder", ""}), 2, {"data.folder"});
  expect_sentence(run({"train"}), 2, {"--recipe"});
  expect_sentence(run({"train", "--recipe", "none.json"}), 2, {"none.json"});
  expect_sentence(run({"train", "--out", "never", "--resume"}), 2, {"never", "--recipe"});
  expect_sentence(run({"train", "--recipe", "recipe.json", "--out", ""}), 2, {"--out", "found nothing"});
  expect_sentence(train({"--model.layers[0].ffn.kind", "mixture"}), 2, {"layer 0", "swiglu"});
  expect_sentence(train({"--thread", "1"}), 2, {"did you mean --threads?"});
  expect_sentence(run({"train", "recipe.json"}), 2, {"found only recipe.json", "write --recipe recipe.json"});
  expect_sentence(run({"train", "--recip", "recipe.json", "--out", "never"}), 2, {"did you mean --recipe?"});
  expect_sentence(train({"word"}), 2, {"found word", "leave it out"});
  expect_sentence(train({"--set", "seed"}), 2, {"FIELD=VALUE", "train.tokens=4M"});
  EXPECT_FALSE(fs::exists(Workshop::folder() / "never")) << "a refused recipe leaves nothing";
}

TEST(TrainInput, NamesTheWholeFieldOfAWrongValue) {
  for (const auto& [field, value] : {std::pair{"model.layers[x].heads", "2"},
                                     {"model.schedule", "x"},
                                     {"model.kv_schedule", "/3"},
                                     {"model.context", "99999999999"},
                                     {"model.d_model", "0"},
                                     {"train.clip", "-1"},
                                     {"train.dtype", "half"},
                                     {"train.optimizer", "adam"},
                                     {"train.lr_schedule", "step"},
                                     {"train.batch_rows", "0"},
                                     {"train.tokens", "many"},
                                     {"train.budget.s_min", "2"},
                                     {"train.budget.tau_min", "0"},
                                     {"train.budget.gamma", "-1"},
                                     {"train.budget.entropy_sign", "plus"},
                                     {"model.budget.share", "0.5"},
                                     {"data.stride", "-1"},
                                     {"data.document_mask", "7"},
                                     {"seed", "one"}})
    expect_sentence(
        run({"train", "--recipe", "recipe.json", "--out", "never", "--set", fmt::format("{}={}", field, value)}), 2,
        {field});
}

TEST(TrainRecipe, WithAnUnknownFieldOrBothFormsIsRefused) {
  write_text(Workshop::folder() / "odd.json", R"({"model": {"d_modle": 32}})");
  expect_sentence(run({"train", "--recipe", "odd.json"}), 2, {"d_modle", "d_model"});
  write_text(Workshop::folder() / "odd.json",
             R"({"model": {"d_model": 32, "schedule": "2x2", "layers": [{"heads": 2}]}})");
  expect_sentence(run({"train", "--recipe", "odd.json"}), 2, {"found both"});
  write_text(Workshop::folder() / "odd.json", R"({"seed": 1, "model": {"d_model": 32, "d_model": 64}})");
  expect_sentence(run({"train", "--recipe", "odd.json"}), 2, {"odd.json", "\"d_model\" twice"});
  write_text(Workshop::folder() / "odd.json", "{");
  expect_sentence(run({"train", "--recipe", "odd.json"}), 2, {"odd.json", "JSON"});
}

TEST(TrainFolder, ThatIsUsedOrNotWritableOrBusyIsRefused) {
  expect_sentence(run({"train", "--recipe", "recipe.json", "--out", trained()}), 2, {"finished run"});
  expect_sentence(run({"train", "--recipe", "recipe.json", "--out", "data"}), 2, {"empty folder"});
  write_text(Workshop::folder() / "plain", "x");
  expect_sentence(run({"train", "--recipe", "recipe.json", "--out", "plain/run"}), 2, {"plain", "found a file"});
  expect_sentence(run({"train", "--recipe", "recipe.json", "--out", "plain"}), 2, {"plain", "found a file"});
  fs::create_symlink("nowhere", Workshop::folder() / "dangling");
  expect_sentence(run({"train", "--recipe", "recipe.json", "--out", "dangling/run"}), 2, {"a link to nothing"});
  expect_sentence(run({"train", "--recipe", "recipe.json", "--out", std::string(300, 'n')}), 2,
                  {"a name that the system does not accept"});
  expect_sentence(run({"train", "--out", trained(), "--resume", "--train.tokens", "9k"}), 2, {"keeps its recipe"});

  const auto& shop = Workshop::folder();
  TemporaryFolder other;  // for the streams of the first process
  const pid_t first =
      start_prism({"train", "--recipe", (shop / "recipe.json").string(), "--out", (shop / "busy").string(),
                   "--data.folder", (shop / "data").string(), "--train.tokens", "100M", "--threads", "1"},
                  other.path());
  ASSERT_TRUE(wait_for_file(shop / "busy/recipe.json"));
  const auto second = run({"train", "--out", "busy", "--resume"});
  ::kill(first, SIGKILL);
  wait_for(first, other.path());
  expect_sentence(second, 1, {"process " + std::to_string(first)});
}

TEST(TrainSamples, EndWithTheContextAndNeedATokenizer) {
  const auto& shop = Workshop::folder();
  const auto train = [](const std::string& out, const std::vector<std::string>& more) {
    std::vector<std::string> words = {"train",     "--recipe", "recipe.json",    "--out", out,
                                      "--threads", "1",        "--train.tokens", "512"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  };
  EXPECT_EQ(train("long-sample", {"--train.sample_tokens", "1000"}).status, 0);
  EXPECT_NE(read_text(shop / "long-sample/records.jsonl").find("\"kind\":\"sample\""), std::string::npos);
  EXPECT_EQ(
      train("warm-samples", {"--train.sample_temperature", "[0,1.5]", "--train.sample_every_tokens", "256"}).status, 0);
  std::vector<std::pair<int64_t, double>> samples;
  std::istringstream lines(read_text(shop / "warm-samples/records.jsonl"));
  for (std::string line; std::getline(lines, line);)
    if (const auto record = Json::parse(line); record["kind"] == "sample")
      samples.emplace_back(record["tokens"], record["temperature"]);
  EXPECT_EQ(samples, (std::vector<std::pair<int64_t, double>>{{256, 0}, {256, 1.5}, {512, 0}, {512, 1.5}}));
  fs::create_directories(shop / "bare");
  for (const auto& entry : fs::directory_iterator(shop / "data"))
    if (entry.path().extension() == ".bin" || entry.path().filename() == "data.json")
      fs::copy(entry.path(), shop / "bare" / entry.path().filename());
  const auto bare = train("bare-run", {"--data.folder", "bare"});
  EXPECT_EQ(bare.status, 0) << bare.err;
  EXPECT_NE(bare.err.find("no tokenizer.json, so train.sample_prompts are left out"), std::string::npos) << bare.err;
}

TEST(TrainFolder, WithAFileForItsCheckpointsIsRefusedBeforeTheFirstStep) {
  const auto& shop = Workshop::folder();
  ASSERT_EQ(run({"train", "--recipe", "recipe.json", "--out", "blocked", "--train.tokens", "512"}).status, 0);
  fs::remove_all(shop / "blocked/checkpoints");
  write_text(shop / "blocked/checkpoints", "x");
  expect_sentence(run({"train", "--out", "blocked", "--resume"}), 2, {"blocked/checkpoints", "found a file"});
}

TEST(TrainDisk, ThatIsFullLeavesTheLastCheckpointWhole) {
  const auto& shop = Workshop::folder();
  ASSERT_EQ(
      run({"train", "--recipe", "recipe.json", "--out", "full", "--threads", "1", "--train.tokens", "1024"}).status, 0);
  // Files may not grow beyond 20 kB: the records fit, the weights do not.
  const auto outcome =
      run_prism({"train", "--recipe", "recipe.json", "--out", "full2", "--threads", "1"}, shop, "", [] {
        const struct rlimit limit { 20000, 20000 };
        ::setrlimit(RLIMIT_FSIZE, &limit);
      });
  expect_sentence(outcome, 1, {"free some space", "then continue with: prism train --out full2 --resume"});
  for (const auto& entry : fs::recursive_directory_iterator(shop / "full2"))
    EXPECT_EQ(entry.path().string().find(".tmp"), std::string::npos) << entry.path();
  EXPECT_EQ(run({"train", "--out", "full2", "--resume", "--threads", "1"}).status, 0)
      << "resumes once there is space again";
}

TEST(TrainDisk, ThatIsFullFromTheStartLeavesNoFolder) {
  const auto& shop = Workshop::folder();
  const auto outcome =
      run_prism({"train", "--recipe", "recipe.json", "--out", "new/full", "--threads", "1"}, shop, "", [] {
        const struct rlimit limit { 100, 100 };  // room for the lock alone
        ::setrlimit(RLIMIT_FSIZE, &limit);
        ::close(STDERR_FILENO);
        ::dup2(::open("/dev/null", O_WRONLY), STDERR_FILENO);
      });
  EXPECT_EQ(outcome.status, 1);
  EXPECT_FALSE(fs::exists(shop / "new"));
  EXPECT_EQ(
      run({"train", "--recipe", "recipe.json", "--out", "new/full", "--threads", "1", "--train.tokens", "512"}).status,
      0)
      << "the same command works once there is space";
}

TEST(TrainData, WithALinkToNothingForItsTokenizerIsRefused) {
  const auto& shop = Workshop::folder();
  fs::copy(shop / "data", shop / "dangling");
  fs::remove(shop / "dangling/tokenizer.json");
  fs::create_symlink("nowhere", shop / "dangling/tokenizer.json");
  expect_sentence(run({"train", "--recipe", "recipe.json", "--data.folder", "dangling", "--out", "never"}), 2,
                  {"dangling/tokenizer.json", "No such file"});
}

TEST(RestartCommand, AcceptsRecordsThatCannotBeRead) {
  const auto& shop = Workshop::folder();
  const std::vector<std::string> words = {"train",     "--recipe", "recipe.json",    "--out", "looped",
                                          "--threads", "1",        "--train.tokens", "512"};
  ASSERT_EQ(run(words).status, 0);
  fs::remove_all(shop / "looped/checkpoints");  // the last one would say that the run is finished
  fs::remove(shop / "looped/records.jsonl");
  fs::create_symlink("records.jsonl", shop / "looped/records.jsonl");
  auto again = words;
  again.push_back("--restart");
  const auto outcome = run(again);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
}

TEST(StandardError, ThatIsFullOrClosedStopsNothing) {
  const auto& shop = Workshop::folder();
  const std::vector<std::string> words = {"train", "--recipe",       "recipe.json", "--threads",
                                          "1",     "--train.tokens", "1024"};
  const auto into = [&](const std::string& out) {
    auto all = words;
    all.insert(all.end(), {"--out", out});
    return all;
  };
  const auto full = [] { ::dup2(::open("/dev/full", O_WRONLY), STDERR_FILENO); };
  EXPECT_EQ(run_prism(into("unheard"), shop, "", full).status, 0);
  EXPECT_EQ(run_prism({"info", "nowhere"}, shop, "", full).status, 2);
  EXPECT_EQ(run_prism(into("closed"), shop, "", [] { ::close(STDERR_FILENO); }).status, 0);
  for (const char* file : {".lock", "recipe.json", "records.jsonl"})
    EXPECT_EQ(read_text(shop / "closed" / file).find("tokens/s, loss"), std::string::npos) << file;
}

TEST(StandardError, ThatNobodyReadsAnyMoreDoesNotKeepASignalFromSaving) {
  // Ctrl-C in `prism train 2>&1 | tee log` also ends tee.
  const auto& shop = Workshop::folder();
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = start_prism(
      {"train", "--recipe", "recipe.json", "--threads", "1", "--train.tokens", "100M", "--out", "unread"}, shop, [&] {
        ::dup2(ends[1], STDERR_FILENO);
        ::close(ends[0]);
        ::close(ends[1]);
      });
  ::close(ends[1]);
  ::close(ends[0]);
  ASSERT_TRUE(wait_for_file(shop / "unread/checkpoints"));
  ::kill(child, SIGTERM);
  EXPECT_EQ(wait_for(child, shop).status, 1);
  EXPECT_EQ(read_text(shop / "unread/records.jsonl").back(), '\n');
}

TEST(TrainName, MayHoldBytesThatAreNoText) {
  EXPECT_EQ(run({"train", "--recipe", "recipe.json", "--out", "odd-name", "--threads", "1", "--train.tokens", "1024",
                 "--name", "a\xff", "--json"})
                .status,
            0);
}

TEST(TrainFolder, ThatAKilledStartLeftIsTaken) {
  fs::create_directories(Workshop::folder() / "killed-start");
  write_text(Workshop::folder() / "killed-start/recipe.json.123.tmp", "{");
  const auto outcome =
      run({"train", "--recipe", "recipe.json", "--out", "killed-start", "--threads", "1", "--train.tokens", "1024"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_FALSE(fs::exists(Workshop::folder() / "killed-start/recipe.json.123.tmp"));
}

TEST(TrainLoss, ThatIsNotFiniteStopsTheRunNamingStepAndCheckpoint) {
  const auto outcome = run({"train", "--recipe", "recipe.json", "--out", "diverged", "--threads", "1",
                            "--train.learning_rate", "1e30", "--train.warmup_share", "0", "--train.clip", "0"});
  expect_sentence(outcome, 1, {"finite loss", "at step", "windows", "checkpoint"});
  EXPECT_EQ(outcome.err.find("-nan"), std::string::npos) << outcome.err;
}

TEST(TrainTokenizer, OtherThanTheOneThatMadeTheShardsIsRefused) {
  const auto& shop = Workshop::folder();
  fs::remove_all(shop / "swapped");
  fs::copy(shop / "data", shop / "swapped");
  ASSERT_EQ(run({"tokenizer", "train", "text.txt", "--vocab-size", "290", "--out", "smaller"}).status, 0);
  fs::copy_file(shop / "smaller/tokenizer.json", shop / "swapped/tokenizer.json", fs::copy_options::overwrite_existing);
  expect_sentence(run({"train", "--recipe", "recipe.json", "--data.folder", "swapped", "--out", "never"}), 2,
                  {"tokenizer that made the shards", "prism tokenize again"});
}

TEST(TrainData, WithoutTheValidationShardsItSpeaksOfIsRefused) {
  const auto& shop = Workshop::folder();
  fs::remove_all(shop / "halved");
  fs::copy(shop / "data", shop / "halved");
  fs::remove(shop / "halved/valid_000000.bin");
  expect_sentence(run({"train", "--recipe", "recipe.json", "--data.folder", "halved", "--out", "never"}), 2,
                  {"validation shards", "halved"});
}

TEST(ResumeCommand, MayRepeatTheRecipeButNotChangeIt) {
  const auto resume = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"train", "--recipe", "recipe.json", "--out", trained(), "--resume"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  };
  EXPECT_EQ(resume({"--threads", "1"}).status, 0);
  EXPECT_EQ(resume({"--train.tokens", "4096"}).status, 0) << "with the number of threads that the run began with";
  expect_sentence(resume({"--train.tokens", "8192"}), 2, {"train/tokens", "start a new run"});
  expect_sentence(resume({"--model.schedule", "2x2"}), 2, {"model/layers"});
  expect_sentence(run({"train", "--out", trained(), "--resume", "--seed", "4"}), 2, {"seed", "keeps its recipe"});
}

TEST(ResumeCommand, GoesOnWithTheThreadsThatTheRunBeganWith) {
  const auto& shop = Workshop::folder();
  ASSERT_EQ(run({"train", "--recipe", "recipe.json", "--out", "one thread", "--threads", "1"}).status, 0);
  fs::remove_all(shop / "one thread/checkpoints/step-00000016");
  const auto outcome =
      run_prism({"train", "--out", "one thread", "--resume"}, shop, "", [] { ::unsetenv("OMP_NUM_THREADS"); });
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err.find("its last digits may differ"), std::string::npos) << outcome.err;
  EXPECT_TRUE(read_text(shop / "one thread/checkpoints/step-00000016/model.safetensors") ==
              read_text(last_checkpoint() / "model.safetensors"));
}

TEST(ResumeCommand, SaysWhenItStartsAgain) {
  const auto& shop = Workshop::folder();
  trained();
  fs::remove_all(shop / "bare");
  fs::copy(shop / "trained", shop / "bare", fs::copy_options::recursive);
  fs::remove_all(shop / "bare/checkpoints");
  expect_sentence(run({"train", "--out", "bare", "--resume", "--threads", "1"}), 2, {"records but no checkpoints"});
  const std::string records = read_text(shop / "bare/records.jsonl");
  write_text(shop / "bare/records.jsonl", records.substr(0, records.rfind(R"({"kind":"end")")));
  const auto outcome = run({"train", "--out", "bare", "--resume", "--threads", "1"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.err.find("starts again at step 0"), std::string::npos) << outcome.err;
}

TEST(Train, RefusesMoreThreadsThanCanWork) {
  if (core_limit().threads >= 64) GTEST_SKIP() << "these cores can run 1,024 threads";
  expect_sentence(run({"train", "--recipe", "recipe.json", "--out", "threads", "--threads", "1024"}), 2,
                  {"found 1024", "fewer with --threads"});
}

TEST(Train, PrintsANameOnOneLine) {
  const auto outcome = run({"train", "--recipe", "recipe.json", "--out", "two-lines", "--threads", "1",
                            "--train.tokens", "512", "--name", "a\ntrain: b"});
  EXPECT_NE(outcome.err.find("train: a train: b, heads"), std::string::npos) << outcome.err;
}

TEST(Shards, ThatAreCutOrForeignAreRefused) {
  const auto& shop = Workshop::folder();
  const auto copy = [&](const char* name) {
    fs::remove_all(shop / name);
    fs::copy(shop / "data", shop / name, fs::copy_options::recursive);
    return shop / name / "train_000000.bin";
  };
  auto shard = copy("cut");
  fs::resize_file(shard, fs::file_size(shard) - 2);
  expect_sentence(run({"train", "--recipe", "recipe.json", "--out", "never", "--data.folder", "cut"}), 2,
                  {"train_000000.bin"});
  shard = copy("foreign");
  std::fstream(shard, std::ios::in | std::ios::out | std::ios::binary).write("GGUF", 4);
  expect_sentence(run({"train", "--recipe", "recipe.json", "--out", "never", "--data.folder", "foreign"}), 2,
                  {"train_000000.bin"});
}

TEST(TrainData, MayBeShardsFromElsewhereWithoutDataJsonOrTokenizer) {
  const auto& shop = Workshop::folder();
  fs::create_directories(shop / "published");
  fs::copy_file(shop / "data/train_000000.bin", shop / "published/fineweb_train_000000.bin");
  fs::copy_file(shop / "data/valid_000000.bin", shop / "published/fineweb_val_000000.bin");
  const std::vector<std::string> words = {
      "train", "--recipe", "recipe.json",           "--out", "foreign-data",   "--threads",
      "1",     "--set",    "data.folder=published", "--set", "train.tokens=1k"};
  expect_sentence(run(words), 2, {"vocab_size"});
  auto sized = words;
  sized.insert(sized.end(), {"--model.vocab_size", "300"});
  const auto outcome = run(sized);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("validation loss"), std::string::npos) << outcome.out;
  sized.back() = "200";  // too few for the token ids in the shards
  sized[4] = "too-few";
  expect_sentence(run(sized), 2, {"from 0 to 199"});
}

TEST(Resume, NeedsTheRunAndItsTokensAsTheyWere) {
  const auto& shop = Workshop::folder();
  expect_sentence(run({"train", "--out", "no-run", "--resume"}), 2, {"no-run", "nothing", "--recipe"});
  fs::create_directories(shop / "bare");
  expect_sentence(run({"train", "--out", "bare", "--resume"}), 2, {"no recipe.json"});

  fs::copy(shop / "data", shop / "changed", fs::copy_options::recursive);
  ASSERT_EQ(run({"train", "--recipe", "recipe.json", "--out", "moved", "--threads", "1", "--data.folder", "changed",
                 "--train.tokens", "1024"})
                .status,
            0);
  const auto shard = shop / "changed/train_000000.bin";
  std::string bytes = read_text(shard);
  std::reverse(bytes.begin() + 1024, bytes.end());  // the same number of tokens, but others
  for (size_t i = 1024; i + 1 < bytes.size(); i += 2) std::swap(bytes[i], bytes[i + 1]);
  const std::string before = read_text(shard);
  write_text(shard, bytes);
  const std::vector<std::string> resume = {"train", "--out", "moved", "--resume", "--threads", "1"};
  expect_sentence(run(resume), 2, {"data that the run began with"});
  write_text(shard, before);
  fs::remove(shop / "changed/valid_000000.bin");
  expect_sentence(run(resume), 2, {"validation shards"});
}

}  // namespace
}  // namespace prism
