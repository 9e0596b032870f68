// Classification: assigns each text to one of several classes.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "prism/data/labelled/example_loader.h"
#include "prism/models/classifier.h"
#include "prism/tokenizer/tokenizer.h"
#include "prism/training/objective/budget_training.h"
#include "prism/training/objective/objective.h"

namespace prism {

/// Trains a Classifier by cross-entropy over shuffled batches of labelled texts; validates accuracy on the "valid"
/// split. Layers with a head budget get the losses and the noise of train.budget.
class Classification : public Objective {
 public:
  void open(Recipe& recipe) override;
  void make_model(const Recipe& recipe, torch::ScalarType type) override;
  void set_step(int64_t step) override { budgets_.set_step(step, *classifier_); }
  std::vector<WeightEntry> weights() const override { return classifier_->weights(); }
  /// The hidden states, as in training: with the noise of head budgets, and all their heads.
  torch::Tensor forward(int64_t batch, const BatchView& view) override;
  torch::Tensor loss(int64_t batch, const torch::Tensor& hidden) override;
  std::vector<double> head_share() const override { return budgets_.head_share(); }
  Metric metric() const override { return {"val_accuracy", /*less_is_better=*/false}; }
  bool has_validation() const override { return valid_data_ != nullptr; }
  std::optional<Validation> validate() override;
  std::string fingerprint() const override;
  void describe(StartRecord& record) const override;
  std::vector<std::string> notes() const override;
  int64_t flops_per_token() const override;
  double flops_per_unit() const override;
  const Tokenizer* tokenizer() const override { return tokenizer_ ? &*tokenizer_ : nullptr; }
  void save(const std::filesystem::path& folder) const override;
  std::optional<std::vector<RunRecord>> measure_finals() override;

 private:
  /// Batch n, kept from before or read from the loader.
  ExampleBatch& batch_of(int64_t n);

  Recipe recipe_;
  std::unique_ptr<LabelledDataset> train_data_, valid_data_, test_data_;
  std::unique_ptr<ExampleLoader> loader_;
  std::map<int64_t, ExampleBatch> batches_;  ///< the current step's batches; diagnostics read them again
  std::optional<Tokenizer> tokenizer_;
  Classifier classifier_{nullptr};
  BudgetTraining budgets_;
};

}  // namespace prism
