// What a run computes: accumulation, validation, best weights, learning-rate schedule.
#include "prism/training/trainer.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "prism/checkpoint/model_folder.h"
#include "prism/core/random.h"
#include "prism/formats/token_shard.h"
#include "prism/training/objective/language_modelling.h"
#include "tests/core/message_of.h"
#include "tests/training/tiny_run.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

class Run : public TinyRun {};

/// With prompts, which are not predicted, batches have different numbers of labels.
TEST_F(Run, AccumulatesSmallBatchesToTheGradientOfALargeOne) {
  for (const bool prompts : {false, true}) {
    auto whole = recipe(), parts = recipe();
    whole.train.prompts = parts.train.prompts = prompts;
    parts.train.batch_rows = 2;
    parts.train.accumulate = 4;
    const std::string name = prompts ? "prompts" : "windows";
    const auto one = train(whole, name + "-whole"), four = train(parts, name + "-parts");
    const auto losses = values(one, "train", "loss"), others = values(four, "train", "loss");
    const auto norms = values(one, "train", "grad_norm"), other_norms = values(four, "train", "grad_norm");
    ASSERT_EQ(losses.size(), 8u);
    ASSERT_EQ(others.size(), 8u);
    // float32 sums in a different order differ slightly, over eight steps.
    for (size_t i = 0; i < losses.size(); ++i) {
      EXPECT_NEAR(losses[i], others[i], 2e-5 * losses[i]) << name << " " << i;
      EXPECT_NEAR(norms[i], other_norms[i], 2e-4 * norms[i]) << name << " " << i;
    }
    EXPECT_LT(losses.back(), losses[0] - 0.1);
  }
}

TEST_F(Run, ValidatesWithTheMeanOverEveryTokenOfTheSplit) {
  const auto records = train(recipe(), "validated");
  const auto eval = values(records, "eval", "val_loss");
  ASSERT_EQ(eval.size(), 1u);
  // By the definition, one window at a time.
  const TokenDataset data(folder_.path() / "data", "valid");
  const int64_t windows = (data.size() - 1) / kContext;
  std::vector<int64_t> tokens(static_cast<size_t>(windows * kContext + 1));
  data.read(0, tokens);
  const torch::NoGradGuard no_gradients;
  double sum = 0;
  for (int64_t w = 0; w < windows; ++w) {
    const auto row = torch::from_blob(tokens.data() + w * kContext, {1, kContext + 1}, torch::kLong).clone();
    const auto logits =
        decoder_->head.logits(decoder_(row.narrow(1, 0, kContext), ForwardContext{})).to(torch::kDouble);
    const auto chosen = logits.log_softmax(-1).gather(2, row.narrow(1, 1, kContext).unsqueeze(2));
    sum -= chosen.sum().item<double>();
  }
  EXPECT_NEAR(eval[0], sum / static_cast<double>(windows * kContext), 1e-5);
  EXPECT_EQ(values(records, "eval", "val_tokens")[0], static_cast<double>(windows * kContext));
}

TEST_F(Run, ValidatesOnAsManyTokensAsItIsToldInWholeBatches) {
  auto r = recipe();
  r.train.eval_tokens = 100;
  EXPECT_EQ(values(train(r, "some"), "eval", "val_tokens"), (std::vector<double>{8 * kContext}));
}

TEST_F(Run, KeepsTheWeightsOfTheLowestValidationLoss) {
  auto r = recipe();
  r.train.eval_every_tokens = 8 * kContext;
  r.train.learning_rate = 3;  // too high: the loss rises with the warm-up
  r.train.warmup_share = 0.99;
  const auto records = train(r, "best");
  const auto losses = values(records, "eval", "val_loss");
  ASSERT_EQ(losses.size(), 8u);
  const auto lowest = std::min_element(losses.begin(), losses.end()) - losses.begin() + 1;
  ASSERT_LT(lowest, 8) << "the last step was the best one, which shows nothing";
  EXPECT_EQ(checkpoints("best", "best-"), (std::vector<std::string>{fmt::format("best-{:08}", lowest)}));
  EXPECT_EQ(values(records, "end", "best_val_loss")[0], losses[static_cast<size_t>(lowest - 1)]);
}

TEST_F(Run, WarmsUpOverTokensWhereTheyAreGiven) {
  auto r = recipe();
  r.train.warmup_share = 0.9;
  r.train.warmup_tokens = 2 * 8 * kContext;
  const auto rates = values(train(r, "warm"), "train", "learning_rate");
  EXPECT_NEAR(rates[0], 0.5e-2, 1e-12);
  EXPECT_NEAR(rates[1], 1e-2, 1e-12);
  EXPECT_LT(rates[2], 1e-2);
}

TEST_F(Run, ForgetsWhatLiesBehindTheCheckpointItGoesOnFrom) {
  auto r = recipe();
  r.train.eval_every_tokens = 8 * kContext;
  r.train.checkpoint_every_tokens = 8 * kContext;
  r.train.keep_last = 20;
  train(r, "whole");
  fs::copy(folder_.path() / "whole", folder_.path() / "cut", fs::copy_options::recursive);
  for (const auto& name : checkpoints("cut", "step-"))
    if (name > "step-00000003") fs::remove_all(folder_.path() / "cut/checkpoints" / name);
  // A best checkpoint of a later step, which resuming must discard.
  fs::rename(folder_.path() / "cut/checkpoints" / checkpoints("cut", "best-")[0],
             folder_.path() / "cut/checkpoints/best-00000099");
  {
    Trainer trainer = resumed("cut");
    EXPECT_TRUE(checkpoints("cut", "best-").empty());
    EXPECT_TRUE(trainer.run().finished);
  }
  EXPECT_EQ(checkpoints("cut", "best-"), checkpoints("whole", "best-"));
}

TEST_F(Run, GoesOnToTheSameRecordsWithEveryOptimizerAndSchedule) {
  for (const auto& [optimizer, schedule] : {std::pair{"adamw", "wsd"}, {"muon", "linear"}, {"sgd", "cosine"}}) {
    auto r = recipe();
    r.train.optimizer_options.kind = optimizer;
    r.train.lr_schedule = schedule;
    r.train.checkpoint_every_tokens = 8 * kContext;
    r.train.keep_last = 20;
    const std::string whole = std::string("whole-") + optimizer, cut = std::string("cut-") + optimizer;
    const auto expected = train(r, whole);
    fs::copy(folder_.path() / whole, folder_.path() / cut, fs::copy_options::recursive);
    for (const auto& name : checkpoints(cut, "step-"))
      if (name > "step-00000003") fs::remove_all(folder_.path() / cut / "checkpoints" / name);
    EXPECT_TRUE(resumed(cut).run().finished);
    const auto found = read_records(folder_.path() / cut / "records.jsonl");
    for (const char* field : {"loss", "learning_rate", "grad_norm"})
      EXPECT_EQ(values(found, "train", field), values(expected, "train", field)) << optimizer << " " << field;
    EXPECT_EQ(values(found, "end", "val_loss"), values(expected, "end", "val_loss")) << optimizer;
    EXPECT_LT(values(found, "train", "loss").back(), values(found, "train", "loss")[0]) << optimizer;
  }
}

TEST_F(Run, WarnsOfTheSameWhereItGoesOn) {
  auto r = recipe();
  r.train.learning_rate = 3;  // too high: the loss rises with the warm-up
  r.train.warmup_share = 0.99;
  r.train.optimizer_options.clip = 0;
  r.train.checkpoint_every_tokens = 8 * kContext;
  r.train.keep_last = 20;
  const auto warnings = [](const std::vector<Json>& records) {
    std::vector<std::string> found;
    for (const auto& record : records)
      if (record["kind"] == "warning")
        found.push_back(fmt::format("{} {}: {}", record["step"].get<int64_t>(), record["sign"].get<std::string>(),
                                    record["text"].get<std::string>()));
    return found;
  };
  const auto expected = warnings(train(r, "whole"));
  const auto of_loss = std::find_if(expected.begin(), expected.end(), [](const std::string& warning) {
    return warning.find(" loss: the loss is ") != std::string::npos && warning > "4";
  });
  ASSERT_NE(of_loss, expected.end()) << "no warning after the third step to miss";
  for (const char* last : {"step-00000003", "step-00000007"}) {
    const std::string cut = std::string("cut-") + last;
    fs::copy(folder_.path() / "whole", folder_.path() / cut, fs::copy_options::recursive);
    for (const auto& name : checkpoints(cut, "step-"))
      if (name > last) fs::remove_all(folder_.path() / cut / "checkpoints" / name);
    EXPECT_TRUE(resumed(cut).run().finished);
    EXPECT_EQ(warnings(read_records(folder_.path() / cut / "records.jsonl")), expected);
  }
}

TEST_F(Run, TrainsOnAMixtureAndValidatesOnItsFolder) {
  put("train_000000.bin", 3000, 5, "more");
  auto mixed = recipe();
  mixed.data.mixture = {{mixed.data.folder, 1}, {(folder_.path() / "more").string(), 3}};
  const auto records = train(mixed, "mixed"), plain = train(recipe(), "plain");
  EXPECT_EQ(values(records, "eval", "val_tokens"), values(plain, "eval", "val_tokens"));
  EXPECT_NE(values(records, "train", "loss"), values(plain, "train", "loss"));
  // A mixture of the folder alone equals no mixture.
  mixed.data.mixture = {{mixed.data.folder, 5}};
  EXPECT_EQ(values(train(mixed, "one"), "train", "loss"), values(plain, "train", "loss"));
  mixed.data.mixture = {{mixed.data.folder, 1}, {"", 1}};
  EXPECT_REFUSED(prepared(mixed, folder_.path() / "none", Start::fresh), "a folder in each part");
  // Tokens of another tokenizer.
  DatasetInfo info;
  info.vocab_size = kVocabulary;
  info.tokenizer_fingerprint = "other";
  info.train_tokens = 3000;
  write_file(folder_.path() / "more/data.json", to_text(fields_to_json(info)));
  mixed.data.mixture = {{mixed.data.folder, 1}, {(folder_.path() / "more").string(), 1}};
  EXPECT_REFUSED(prepared(mixed, folder_.path() / "none", Start::fresh), "made with one tokenizer");
  EXPECT_FALSE(fs::exists(folder_.path() / "none"));
}

TEST_F(Run, ComputesActivationsAgainToTheSameRecords) {
  auto again = recipe();
  again.train.recompute = true;
  EXPECT_EQ(values(train(again, "again"), "train", "loss"), values(train(recipe(), "kept"), "train", "loss"));
}

TEST_F(Run, TakesTheModelOfInitIfTheRecipeHasNone) {
  train(recipe(), "first");
  Json json = fields_to_json(recipe());
  json.erase("model");
  const auto init = (folder_.path() / "first").string();
  auto r = recipe_from_json(json, "a recipe", {{"init", init}, {"model.context", "16"}});
  auto expected = load_config(init);
  expected.context = 16;
  EXPECT_TRUE(equal_fields(r.model, expected));
  r.train.learning_rate = 0;
  train(r, "second");
  const auto own = recipe_from_json(fields_to_json(recipe()), "a recipe", {{"init", init}});
  EXPECT_EQ(own.model.d_model, recipe().model.d_model) << "a recipe with a model keeps it";
}

TEST_F(Run, BeginsWithTheWeightsOfAnotherModelWhateverItsHeads) {
  const auto first = train(recipe(), "first");
  auto r = recipe();
  r.init = (folder_.path() / "first").string();
  r.model.layers[0].heads = r.model.layers[0].kv_heads = 2;
  r.train.learning_rate = 0;
  const auto second = train(r, "second");
  // The first loss is near the other run's last: the weights are the same, only the first layer's heads differ.
  EXPECT_LT(values(second, "train", "loss")[0], values(first, "train", "loss")[0] - 0.1);
  const auto weights = [&](const std::string& name) {
    return load_model(folder_.path() / name, torch::kFloat).decoder->blocks[0]->attention.qkv.weight.tensor();
  };
  EXPECT_TRUE(torch::equal(weights("first"), weights("second")));
  r.init = "nowhere";
  EXPECT_REFUSED(train(r, "third"), "nowhere");
  r.init = (folder_.path() / "first").string();
  r.model.layers[1].ffn.width = 40;
  EXPECT_REFUSED(train(r, "third"), "init: expected weights that fit");
  const auto weights_file = find_model_folder(folder_.path() / "first") / "model.safetensors";
  fs::rename(weights_file, weights_file.string() + ".index.json");
  EXPECT_REFUSED(train(r, "third"), "expected JSON in");
  EXPECT_FALSE(fs::exists(folder_.path() / "third"));
}

TEST_F(Run, MeasuresAttentionDistanceBeforeItEnds) {
  auto r = recipe();
  r.final.distance_sequences = 5;
  const auto records = train(r, "distance");
  const auto measured = std::find_if(records.begin(), records.end(),
                                     [](const Json& record) { return record["kind"] == "attention_distance"; });
  ASSERT_NE(measured, records.end());
  EXPECT_EQ((*measured)["sequences"], 5);
  ASSERT_EQ((*measured)["layers"].size(), 2u);
  EXPECT_EQ((*measured)["layers"][1]["heads"], 2);
  EXPECT_GT((*measured)["layers"][0]["distance"].get<double>(), 0);
  EXPECT_EQ(records.back()["kind"], "end");
  r.final.distance_sequences = -1;
  EXPECT_REFUSED(train(r, "negative"), "distance_sequences");
  r.final.distance_sequences = 0;
  r.final.texts = {{"a text", "", {"absent.txt"}}};
  EXPECT_REFUSED(train(r, "no tokenizer"), "tokenizer.json");
}

TEST_F(Run, LooksInsideNowAndThenWithoutChangingAnything) {
  auto r = recipe();
  r.train.tokens = 20 * 8 * kContext;
  r.train.diagnose_steps = 7;
  const auto records = train(r, "seen");
  std::vector<int64_t> steps;
  for (const auto& record : records) {
    if (record["kind"] != "diagnostics") continue;
    steps.push_back(record["step"].get<int64_t>());
    EXPECT_EQ(record["entropy"].size(), 2u);
    EXPECT_EQ(record["activations"].size(), 3u);
    EXPECT_GT(record["parameters"][0]["update"], 0);
    EXPECT_GT(record["looked_ms"], 0);
  }
  EXPECT_EQ(steps, (std::vector<int64_t>{1, 4, 7, 14}));
  r.train.diagnose_steps = 0;
  const auto unseen = train(r, "unseen");
  EXPECT_TRUE(values(unseen, "diagnostics", "loss").empty());
  EXPECT_EQ(values(unseen, "train", "loss"), values(records, "train", "loss"));
  EXPECT_EQ(values(unseen, "train", "grad_norm"), values(records, "train", "grad_norm"));
  r.train.diagnose_steps = -1;
  EXPECT_REFUSED(prepared(r, folder_.path() / "none", Start::fresh), "train.diagnose_steps");
}

TEST_F(Run, WithoutItsCheckpointsIsNotTrainedAgainUnderItsName) {
  train(recipe(), "kept");
  fs::remove_all(folder_.path() / "kept/checkpoints");
  EXPECT_REFUSED(resumed("kept"), "records but no checkpoints");
}

TEST_F(Run, WhoseLastStepRuinsTheWeightsHasDiverged) {
  auto r = recipe();
  r.train.tokens = r.train.batch_rows * r.train.accumulate * kContext;
  r.train.optimizer_options.clip = 0;
  r.train.warmup_share = 0;
  r.train.learning_rate = 1e60;
  const auto message = message_of<FailedError>([&] { train(r, "ruined"); });
  EXPECT_NE(message.find("after the last step"), std::string::npos) << message;
  EXPECT_TRUE(has_diverged(folder_.path() / "ruined"));
  EXPECT_FALSE(is_finished(folder_.path() / "ruined"));
}

TEST_F(Run, ThatDivergesNamesACheckpointThatIsGood) {
  auto r = recipe();
  r.train.checkpoint_every_tokens = 8 * kContext;
  r.train.optimizer_options.clip = 0;
  r.train.warmup_share = 0.9;
  r.train.optimizer_options.adamw.weight_decay = 10;
  r.train.learning_rate = 30;
  const auto message = message_of<FailedError>([&] { train(r, "diverged"); });
  const auto names = checkpoints("diverged", "step-");
  EXPECT_NE(message.find("the first value that is not finite in the "), std::string::npos) << message;
  const size_t at = message.find("the last good checkpoint is ");
  ASSERT_NE(at, std::string::npos) << message;
  bool named = false;
  for (const auto& name : names) named = named || message.find(name, at) != std::string::npos;
  EXPECT_TRUE(named) << message;

  const auto run = folder_.path() / "diverged";
  const auto records = read_records(run / "records.jsonl");
  const auto steps = values(records, "train", "step"), losses = values(records, "train", "loss");
  ASSERT_GE(steps.size(), 2u);
  EXPECT_EQ(values(records, "diverged", "step"), (std::vector<double>{steps.back() + 1}));
  EXPECT_EQ(static_cast<double>(losses.size()), steps.back()) << "the curve ends at the last finite loss";
  // A run that diverges right after resuming adds nothing to the curve.
  EXPECT_THROW(resumed("diverged").run(), FailedError);
  const auto again = read_records(run / "records.jsonl");
  EXPECT_EQ(values(again, "train", "loss"), losses);
  EXPECT_EQ(again.back()["kind"], "diverged");
}

}  // namespace
}  // namespace prism
