// The trainer with an objective other than language modelling: regression on the last hidden state.
#include "prism/training/objective/objective.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "prism/core/random.h"
#include "prism/layers/linear.h"
#include "prism/models/trunk.h"
#include "prism/records/run_event.h"
#include "prism/training/trainer.h"
#include "tests/core/message_of.h"
#include "tests/core/temporary_folder.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

/// Predicts the share of even tokens in a sequence from its last hidden state.
class EvenShare : public Objective {
 public:
  void open(Recipe& recipe) override {
    complete(recipe.model);
    rows_ = recipe.train.batch_rows;
  }
  void make_model(const Recipe& recipe, torch::ScalarType type) override {
    trunk_ = std::make_unique<Trunk>(recipe.model);
    trunk_->set_compute_type(type);
    head_ = Linear(recipe.model.d_model, 1);
  }
  void visit(WeightVisitor& v) const {
    trunk_->visit(v);
    v.module("head", "head", head_);
  }
  std::vector<WeightEntry> weights() const override { return weights_of(*this); }
  torch::Tensor forward(int64_t batch, const BatchView& view) override {
    ForwardContext context;
    context.probe = view.probe;
    context.auxiliary = view.auxiliary;
    return trunk_->forward(tokens(batch), context);
  }
  torch::Tensor loss(int64_t batch, const torch::Tensor& hidden) override {
    const auto target = (tokens(batch) % 2 == 0).to(torch::kFloat).mean(1);
    return (head_(hidden.select(1, -1)).squeeze(1) - target).square().mean();
  }
  bool has_validation() const override { return true; }
  std::optional<Validation> validate() override {
    const torch::NoGradGuard no_gradients;
    return Validation{loss(-1, forward(-1, {})).item<double>(), rows_};
  }
  std::string fingerprint() const override { return "even share"; }

 private:
  torch::Tensor tokens(int64_t batch) const {
    Random random(static_cast<uint64_t>(batch + 2));
    auto tokens = torch::empty({rows_, trunk_->config().context}, torch::kLong);
    std::generate_n(tokens.data_ptr<int64_t>(), tokens.numel(), [&] { return static_cast<int64_t>(random.below(8)); });
    return tokens;
  }
  int64_t rows_ = 0;
  std::unique_ptr<Trunk> trunk_;
  Linear head_;
};

Recipe recipe() {
  Recipe r;
  r.name = "even";
  r.model.vocab_size = 8;
  r.model.d_model = 16;
  r.model.context = 8;
  r.model.schedule = "1x1,2x1";
  r.model.ffn_width = 24;
  expand_shorthand(r.model);
  r.train.tokens = 200 * 16 * 8;
  r.train.batch_rows = 16;
  r.train.learning_rate = 1e-2;
  r.train.dtype = "float32";
  r.train.log_steps = 1;
  r.train.eval_every_tokens = 50 * 16 * 8;
  r.train.checkpoint_every_tokens = 13 * 16 * 8;
  r.train.keep_last = 50;
  return r;
}

TrainResult train(const Recipe& r, const fs::path& run, Start start) {
  Trainer trainer(r, run, std::make_unique<EvenShare>());
  trainer.prepare(start);
  return trainer.run();
}

/// All losses, gradient norms and validations of a run, without times.
std::vector<double> figures(const fs::path& run) {
  std::vector<double> found;
  for (const auto& record : read_records(run / "records.jsonl"))
    for (const char* field : {"loss", "grad_norm", "val_loss"})
      if (record.contains(field)) found.push_back(record[field].get<double>());
  return found;
}

TEST(Objective, OfItsOwnTrainsAndValidatesThroughTheSameLoop) {
  const TemporaryFolder folder;
  const auto result = train(recipe(), folder.path() / "run", Start::fresh);
  EXPECT_TRUE(result.finished);
  std::vector<double> validations;
  for (const auto& record : read_records(folder.path() / "run/records.jsonl"))
    if (record["kind"] == "eval") validations.push_back(record["val_loss"].get<double>());
  ASSERT_EQ(validations.size(), 4u);
  // The target's variance is 1/32, the lowest loss of a constant prediction.
  EXPECT_LT(validations.back(), 0.5 / 32);
  EXPECT_EQ(result.value, validations.back());
}

TEST(Objective, OfItsOwnResumesBitForBit) {
  const TemporaryFolder folder;
  const auto whole = folder.path() / "whole", cut = folder.path() / "cut";
  train(recipe(), whole, Start::fresh);
  fs::copy(whole, cut, fs::copy_options::recursive);
  for (const auto& entry : fs::directory_iterator(cut / "checkpoints"))
    if (entry.path().filename() > "step-00000013") fs::remove_all(entry.path());
  EXPECT_TRUE(train(load_run_recipe(cut), cut, Start::resume).finished);
  EXPECT_EQ(figures(cut), figures(whole));
  const auto last = [](const fs::path& run) { return read_file(*last_checkpoint(run) / "model.safetensors"); };
  EXPECT_EQ(last(cut), last(whole));
}

/// Adds the reported progress and a sum of weights to the loss, as layers with an auxiliary loss would.
class WithTerm : public EvenShare {
 public:
  explicit WithTerm(bool adds) : adds_(adds) {}
  torch::Tensor forward(int64_t batch, const BatchView& view) override {
    const auto hidden = EvenShare::forward(batch, view);
    if (adds_ && view.auxiliary != nullptr)
      view.auxiliary->add(torch::full({}, 10 + view.auxiliary->progress()) + 0.5 * weights()[0].weight.tensor().sum());
    return hidden;
  }

 private:
  bool adds_;
};

TEST(Objective, AddsWhatItsLayersAddToTheLossWithTheProgressOfTheTraining) {
  const TemporaryFolder folder;
  Recipe r = recipe();
  r.train.tokens = 4 * 16 * 8;
  r.train.accumulate = 2;
  r.train.learning_rate = 1e-9;  // the weights hardly change
  const auto records = [&](const char* run, bool adds) {
    Trainer trainer(r, folder.path() / run, std::make_unique<WithTerm>(adds));
    trainer.prepare(Start::fresh);
    trainer.run();
    std::vector<TrainRecord> found;
    for (const auto& event : read_run_events(folder.path() / run))
      if (const auto* train = std::get_if<TrainRecord>(&event.record)) found.push_back(*train);
    return found;
  };
  const auto without = records("without", false), with = records("with", true);
  ASSERT_EQ(with.size(), 2u);
  ASSERT_TRUE(with[0].auxiliary_loss && with[1].auxiliary_loss);
  EXPECT_NEAR(*with[1].auxiliary_loss - *with[0].auxiliary_loss, 0.5, 1e-4) << "t / T is 0 and then 1/2";
  EXPECT_NEAR(with[0].loss, without[0].loss, 1e-6) << "the term is recorded apart";
  EXPECT_FALSE(without[0].auxiliary_loss);
  EXPECT_GT(with[0].grad_norm, 0.5 * std::sqrt(8 * 16) - without[0].grad_norm) << "the term's own gradient";
}

/// Has a metric that is better when higher and starts below zero.
class Explained : public EvenShare {
 public:
  Metric metric() const override { return {"explained", false}; }
  std::optional<Validation> validate() override {
    const auto loss = EvenShare::validate();
    return Validation{1 - 32 * loss->value, loss->measured};
  }
};

TEST(Objective, HasAMetricOfWhichMoreMayBeBetter) {
  const TemporaryFolder folder;
  Recipe r = recipe();
  r.train.eval_every_tokens = 16 * 8;
  r.train.learning_rate = 1e-3;
  Trainer trainer(r, folder.path() / "run", std::make_unique<Explained>());
  trainer.prepare(Start::fresh);
  const auto result = trainer.run();
  EXPECT_EQ(result.metric.name, "explained");
  std::vector<double> values;
  double best = 0;
  int64_t best_step = 0;
  for (const auto& event : read_run_events(folder.path() / "run")) {
    if (const auto* start = std::get_if<StartRecord>(&event.record)) {
      EXPECT_EQ(start->metric, result.metric);
    }
    if (const auto* end = std::get_if<EndRecord>(&event.record)) {
      EXPECT_EQ(end->best, best);
    }
    if (const auto* eval = std::get_if<EvalRecord>(&event.record)) {
      values.push_back(eval->value);
      if (values.size() > 1 && values.back() <= best) continue;
      best = values.back();
      best_step = *event.head.step;
    }
  }
  ASSERT_EQ(values.size(), 200u);
  EXPECT_LT(values.front(), 0);
  EXPECT_GT(best, 0.5);
  EXPECT_EQ(CheckpointStore(folder.path() / "run").steps(CheckpointKind::best), std::vector<int64_t>{best_step});
}

TEST(Trainer, ReadsAndWritesNothingUntilItIsPrepared) {
  const TemporaryFolder folder;
  const Trainer trainer(recipe(), folder.path() / "run", std::make_unique<EvenShare>());
  EXPECT_FALSE(fs::exists(folder.path() / "run"));
  Recipe without_data = recipe();
  without_data.data.folder = (folder.path() / "none").string();
  Trainer modelling(without_data, folder.path() / "run", make_objective(without_data));
  EXPECT_REFUSED(modelling.prepare(Start::fresh), "none");
  EXPECT_FALSE(fs::exists(folder.path() / "run"));
}

}  // namespace
}  // namespace prism
