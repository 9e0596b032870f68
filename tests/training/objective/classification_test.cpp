#include "prism/training/objective/classification.h"

#include <gtest/gtest.h>

#include "prism/checkpoint/model_folder.h"
#include "prism/checkpoint/run_state.h"
#include "prism/core/files.h"
#include "prism/core/records.h"
#include "prism/training/trainer.h"
#include "tests/core/message_of.h"
#include "tests/core/temporary_folder.h"
#include "tests/data/labelled/made_examples.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

class ClassificationTest : public testing::Test {
 protected:
  void SetUp() override {
    make_examples(path("data"), 403);
    examples_ = read_labelled_info(path("data")).train_examples;
    ASSERT_NE(examples_ % 8, 0) << "some are left out in each epoch";
  }
  fs::path path(const std::string& name) const { return folder_.path() / name; }

  Recipe recipe(const std::string& budget = "none") const {
    Recipe r;
    r.name = "classifier";
    r.model.d_model = 16;
    r.model.context = 24;
    r.model.classes = 3;
    r.model.attention = "full";
    r.model.schedule = "4x2";
    r.model.ffn_width = 24;
    r.model.each.budget.kind = budget;
    expand_shorthand(r.model);
    r.data.folder = path("data").string();
    r.train.epochs = 3;
    r.train.batch_rows = 8;
    r.train.accumulate = 2;
    r.train.learning_rate = 1e-2;
    r.train.dtype = "float32";
    r.train.log_steps = 1;
    r.train.eval_every_epochs = 1;
    r.train.checkpoint_every_epochs = 0.5;
    r.train.keep_last = 50;
    return r;
  }

  TrainResult train(const Recipe& r, const fs::path& run, Start start = Start::fresh) const {
    Trainer trainer(r, run, make_objective(r));
    notes_ = trainer.prepare(start);
    return trainer.run();
  }

  /// The sentence with which a changed recipe is refused.
  template <class Change>
  std::string refused(const Change& change) const {
    Recipe r = recipe();
    change(r);
    return message_of([&] { train(r, path("refused")); });
  }

  TemporaryFolder folder_;
  int64_t examples_ = 0;  ///< to train on, without those of the other splits
  mutable std::vector<std::string> notes_;
};

/// Everything measured in a run, without times.
std::vector<double> measured(const fs::path& run) {
  std::vector<double> found;
  for (const auto& record : read_records(run / "records.jsonl"))
    for (const char* field : {"loss", "grad_norm", "val_accuracy", "val_loss", "examples"})
      if (record.contains(field) && record["kind"] != "resume") found.push_back(record[field].get<double>());
  for (const auto& record : read_records(run / "records.jsonl"))
    for (const auto& share : record.value("head_share", Json::array())) found.push_back(share.get<double>());
  return found;
}

TEST_F(ClassificationTest, LearnsAndRecordsExamplesAndAccuracy) {
  const auto result = train(recipe(), path("run"));
  EXPECT_TRUE(result.finished);
  EXPECT_EQ(result.metric, (Metric{"val_accuracy", false}));
  ASSERT_TRUE(result.value);
  EXPECT_GT(*result.value, 0.9);
  const int64_t steps = 3 * (examples_ / 8) / 2, epoch = examples_ / 8 / 2;
  ASSERT_EQ(3 * epoch, steps);
  EXPECT_EQ(result.step, steps);
  EXPECT_EQ(result.trained, steps * 16);
  const auto records = read_records(path("run") / "records.jsonl");
  EXPECT_EQ(records[0]["total_examples"], steps * 16);
  EXPECT_FALSE(records[0].contains("total_tokens"));
  std::vector<int64_t> evaluated;
  for (const auto& record : records) {
    EXPECT_FALSE(record.contains("tokens"));
    if (record["kind"] != "eval") continue;
    EXPECT_EQ(record["val_examples"], 64);
    EXPECT_GT(record["val_loss"].get<double>(), 0);
    evaluated.push_back(record["step"].get<int64_t>());
  }
  EXPECT_EQ(evaluated, (std::vector<int64_t>{epoch, 2 * epoch, steps}));
  EXPECT_EQ(load_run_recipe(path("run")).data.examples, examples_);
}

TEST_F(ClassificationTest, LabelsTheTestSplitAtTheEnd) {
  Recipe r = recipe("learned");
  r.final.test = true;
  train(r, path("run"));
  const auto records = read_records(path("run") / "records.jsonl");
  const auto& found = records[records.size() - 2];
  ASSERT_EQ(found["kind"], "classification");
  EXPECT_EQ(found["labelled"], 50);
  const auto& wrong = found["wrong"];
  EXPECT_DOUBLE_EQ(found["accuracy"].get<double>(), 1 - static_cast<double>(wrong.size()) / 50);
  const LabelledDataset test(path("data"), "test");
  for (const auto& example : wrong) {
    EXPECT_EQ(example[1], test.label(example[0].get<int64_t>()));
    EXPECT_NE(example[1], example[2]);
  }
  EXPECT_EQ(found["head_share"].size(), 2u);
}

TEST_F(ClassificationTest, RecordsTheShareOfHeadsOfEachLayer) {
  Recipe r = recipe("learned");
  r.train.log_steps = 7;
  train(r, path("run"));
  int64_t trained = 0, evaluated = 0;
  for (const auto& record : read_records(path("run") / "records.jsonl")) {
    if (record["kind"] != "train" && record["kind"] != "eval") continue;
    ASSERT_EQ(record["head_share"].size(), 2u);
    for (const auto& share : record["head_share"]) {
      EXPECT_GT(share.get<double>(), 0);
      EXPECT_LT(share.get<double>(), 1);
    }
    ++(record["kind"] == "train" ? trained : evaluated);
  }
  EXPECT_GT(trained, 3);
  EXPECT_EQ(evaluated, 3);
  // A share that is fixed is recorded as it is, whatever the number of batches and steps in the mean.
  r = recipe("fixed");
  for (auto& layer : r.model.layers) layer.budget.share = 0.375;
  train(r, path("fixed"));
  for (const auto& record : read_records(path("fixed") / "records.jsonl"))
    if (record["kind"] == "train") {
      EXPECT_NEAR(record["head_share"][1].get<double>(), 0.375, 1e-6);
    }
  train(recipe(), path("plain"));
  for (const auto& record : read_records(path("plain") / "records.jsonl")) EXPECT_FALSE(record.contains("head_share"));
}

TEST_F(ClassificationTest, ResumesBitForBit) {
  for (const char* budget : {"none", "learned", "random"}) {
    const auto whole = path(std::string("whole_") + budget), cut = path(std::string("cut_") + budget);
    train(recipe(budget), whole);
    fs::copy(whole, cut, fs::copy_options::recursive);
    for (const auto& entry : fs::directory_iterator(cut / "checkpoints"))
      if (entry.path().filename() > "step-00000040") fs::remove_all(entry.path());
    ASSERT_TRUE(last_checkpoint(cut));
    EXPECT_TRUE(train(load_run_recipe(cut), cut, Start::resume).finished);
    EXPECT_EQ(measured(cut), measured(whole)) << budget;
    const auto last = [](const fs::path& run) { return read_file(*last_checkpoint(run) / "model.safetensors"); };
    EXPECT_EQ(last(cut), last(whole)) << budget;
  }
}

TEST_F(ClassificationTest, StoresTheTemperatureOfEachCheckpoint) {
  const auto r = recipe("learned");
  const int64_t last = train(r, path("run")).step;
  CheckpointStore checkpoints(path("run"));
  const auto steps = checkpoints.steps(CheckpointKind::step);
  ASSERT_GT(steps.size(), 4u);
  for (const int64_t step : steps)
    EXPECT_DOUBLE_EQ(load_config(checkpoints.path(CheckpointKind::step, step)).budget_tau,
                     r.train.budget.tau(static_cast<double>(step) / static_cast<double>(last)));
  EXPECT_NEAR(load_config(path("run")).budget_tau, 0.1128, 5e-5);
}

TEST_F(ClassificationTest, TrainsBudgetsByTheScheduleOfTheRecipe) {
  Recipe r = recipe("learned");
  train(r, path("plain"));
  for (const char* field : {"beta_max", "sigma_max", "tau_max"}) {
    Recipe changed = r;
    set_field(changed, std::string("train.budget.") + field, "1.5");
    train(changed, path(field));
    EXPECT_NE(measured(path(field)), measured(path("plain"))) << field;
  }
  // Shares of heads begin near 1/2, inside the default bounds.
  Recipe narrow = r;
  narrow.train.budget.s_max = 0.2;
  train(narrow, path("narrow"));
  EXPECT_NE(measured(path("narrow")), measured(path("plain")));
}

TEST_F(ClassificationTest, SavesWhatTheClassesMean) {
  train(recipe(), path("run"));
  const auto model = load_classifier(path("run"), torch::kFloat);
  EXPECT_EQ(model.scheme.classes, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(model.scheme.text_fields, std::vector<std::string>{"2"});
  EXPECT_FALSE(model.scheme.words);
  EXPECT_TRUE(model.tokenizer.has_value());
  write_file(model.folder / "classes.json", R"({"classes": ["a", "b"]})");
  EXPECT_REFUSED(load_classifier(model.folder, torch::kFloat), "expected the names of the model's 3 classes; found 2");
  write_file(model.folder / "classes.json", R"({"classes": ["a", "b", "a"]})");
  EXPECT_REFUSED(load_classifier(model.folder, torch::kFloat), "found \"a\" twice");
  fs::remove(model.folder / "classes.json");
  EXPECT_EQ(load_classifier(model.folder, torch::kFloat).scheme.classes, (std::vector<std::string>{"0", "1", "2"}));
}

TEST_F(ClassificationTest, UsesAShareOfTheExamplesAndSaysWhatIsCut) {
  Recipe r = recipe();
  r.data.fraction = 0.5;
  r.model.context = 8;
  r.train.epochs = 1;
  const auto result = train(r, path("run"));
  EXPECT_EQ(result.trained, examples_ / 2 / 8 / 2 * 16);
  ASSERT_EQ(notes_.size(), 1u);
  EXPECT_NE(notes_[0].find(fmt::format("of {} training texts are longer than model.context, 8 tokens", examples_ / 2)),
            std::string::npos)
      << notes_[0];
}

TEST_F(ClassificationTest, InitialisesFromAnotherClassifier) {
  train(recipe(), path("first"));
  Recipe r = recipe();
  r.init = path("first").string();
  r.train.epochs = 0.1;
  r.train.learning_rate = 1e-9;
  EXPECT_GT(*train(r, path("second")).value, 0.9);
}

TEST_F(ClassificationTest, IsRefusedWithASentence) {
  EXPECT_CONTAINS(refused([](Recipe& r) { r.model.classes = 4; }),
                  "expected model.classes 3, the number of classes in");
  EXPECT_CONTAINS(refused([](Recipe& r) { r.train.tokens = 100; }), "expected train.epochs, because");
  EXPECT_CONTAINS(refused([](Recipe& r) { r.train.epochs = 0; }), "train.epochs: expected a number above 0");
  EXPECT_CONTAINS(refused([](Recipe& r) { r.train.epochs = 1e9; }), "train.epochs: expected at most 1000000");
  EXPECT_CONTAINS(refused([](Recipe& r) { r.train.epochs = 0.01; }), "expected at least one step");
  EXPECT_CONTAINS(refused([](Recipe& r) { r.train.batch_rows = 500; }), "expected at least 500 training examples");
  EXPECT_CONTAINS(refused([](Recipe& r) { r.data.fraction = 2; }), "data.fraction: expected a share above 0");
  EXPECT_CONTAINS(refused([](Recipe& r) { r.data.examples = 7; }), fmt::format("expected data.examples {}", examples_));
  EXPECT_CONTAINS(refused([](Recipe& r) { r.data.folder = "nowhere"; }), "expected labelled examples in nowhere");
  EXPECT_CONTAINS(refused([](Recipe& r) { r.train.eval_tokens = 7; }), "expected no train.eval_tokens");
  EXPECT_CONTAINS(refused([](Recipe& r) { r.train.sample_prompts = {"x"}; }), "expected no train.sample_prompts");
  EXPECT_CONTAINS(refused([](Recipe& r) { r.final.distance_sequences = 1; }), "expected no final.distance_sequences");
  EXPECT_CONTAINS(refused([](Recipe& r) { r.model.vocab_size = 5; }), "expected model.vocab_size of at least");
  EXPECT_CONTAINS(refused([](Recipe& r) { r.train.budget.s_min = 0.95; }), "s_min");
  EXPECT_CONTAINS(refused([](Recipe& r) { r.train.budget.gamma = 4; }), "expected no train.budget");
  EXPECT_CONTAINS(refused([](Recipe& r) { r.model.classes = -1; }), "model.classes: expected a number of classes");
  EXPECT_FALSE(fs::exists(path("refused")));
  EXPECT_CONTAINS(refused([](Recipe& r) { r.model.classes = 0; }), "expected no train.epochs, which only classifiers");
}

TEST(TrainingLength, OfAClassifierIsWholeStepsOfWholeBatches) {
  Recipe r;
  r.model.classes = 2;
  r.train.batch_rows = 10;
  r.data.examples = 109;
  const auto steps = [&](double epochs, int64_t accumulate) {
    r.train.epochs = epochs;
    r.train.accumulate = accumulate;
    return total_steps(r);
  };
  EXPECT_EQ(steps(1, 1), 10);
  EXPECT_EQ(steps(3, 4), 7);
  EXPECT_EQ(steps(0.1, 1), 1);
  EXPECT_EQ(steps(0.7, 1), 7);
  EXPECT_EQ(steps(0.69, 1), 6);
  EXPECT_EQ(steps(2.3, 1), 23);
  EXPECT_EQ(interval_of(r, 0, 0.25), 25);
  EXPECT_EQ(interval_of(r, 0, 0), 0);
  r.model.classes = 0;
  EXPECT_EQ(interval_of(r, 77, 0), 77);
}

}  // namespace
}  // namespace prism
