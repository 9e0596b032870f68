// Language modelling: predicts each token of a text from the tokens before it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "prism/data/loader.h"
#include "prism/generation/generate.h"
#include "prism/models/batch.h"
#include "prism/models/decoder.h"
#include "prism/tokenizer/tokenizer.h"
#include "prism/training/objective/budget_training.h"
#include "prism/training/objective/objective.h"

namespace prism {

/// Trains a Decoder by cross-entropy over shuffled windows of token shards; validates on the "valid" split.
///
/// With head budgets or train.prompts, each window is divided into a prompt of 1 to context - 1 tokens, drawn uniformly
/// by (seed, window), and what follows. Budgets read the prompt alone; only the tokens after it are predicted.
/// Validation predicts the second half of each window.
///
/// In conversations (shards with marks), only tokens of the assistant are predicted, in training and validation. Each
/// of them weighs the same within a step, whichever of its batches it is in.
class LanguageModelling : public Objective {
 public:
  void open(Recipe& recipe) override;
  void make_model(const Recipe& recipe, torch::ScalarType type) override;
  void set_step(int64_t step) override { budgets_.set_step(step, *decoder_); }
  std::vector<WeightEntry> weights() const override { return decoder_->weights(); }
  torch::Tensor forward(int64_t batch, const BatchView& view) override;
  torch::Tensor loss(int64_t batch, const torch::Tensor& hidden) override;
  int64_t labels(int64_t batch) override;
  std::vector<double> head_share() const override { return budgets_.head_share(); }
  bool has_validation() const override { return valid_windows_ != nullptr; }
  std::optional<Validation> validate() override;
  std::string fingerprint() const override;
  void describe(StartRecord& record) const override;
  std::vector<std::string> notes() const override;
  int64_t flops_per_token() const override;
  const Tokenizer* tokenizer() const override { return tokenizer_ ? &*tokenizer_ : nullptr; }
  void save(const std::filesystem::path& folder) const override;
  std::vector<SampleRecord> samples() override;
  std::optional<std::vector<RunRecord>> measure_finals() override;

  Decoder decoder() const { return decoder_; }

 private:
  std::vector<WeightedData> open_training_data();
  void open_validation_data(WindowOptions options, int64_t end_of_text);
  /// Checks before the first step that every sample prompt fits the context.
  void check_samples() const;
  GenerateOptions sample_options(const std::string& prompt, double temperature) const;
  /// Batch n, kept from before or read from the loader.
  Batch& batch_of(int64_t n);
  /// The tensors of the batch's first `rows` rows, divided into prompts if the recipe says so. @param rows  0: all.
  BatchTensors tensors_of(int64_t batch, int64_t rows);
  /// The factor with which the mean of the skip head's losses over the step's batches is that over all their labels.
  double skip_share(int64_t batch);

  Recipe recipe_;
  std::vector<std::unique_ptr<TokenDataset>> train_data_;  ///< the parts of the mixture; one part without a mixture
  std::unique_ptr<TokenDataset> valid_data_;
  bool has_marks_ = false;  ///< a part of the training data has marks
  std::unique_ptr<WindowLoader> loader_, valid_windows_;
  std::map<int64_t, Batch> batches_;  ///< the current step's batches; diagnostics read them again
  std::optional<Tokenizer> tokenizer_;
  Decoder decoder_{nullptr};
  BudgetTraining budgets_;
};

}  // namespace prism
