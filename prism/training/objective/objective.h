// What a model is trained for: its data, its loss and its validation. The trainer needs no other interface to a task.
//
//   class Regression : public Objective { ... };
//   Trainer trainer(recipe, "runs/line", std::make_unique<Regression>());
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "prism/attention/auxiliary.h"
#include "prism/attention/probe.h"
#include "prism/layers/weight_list.h"
#include "prism/records/run_event.h"
#include "prism/tokenizer/tokenizer.h"
#include "prism/training/recipe.h"

namespace prism {

struct Validation {
  double value = 0;                 ///< the value of the objective's metric
  int64_t measured = 0;             ///< tokens or examples it was measured on
  std::optional<double> loss = {};  ///< the loss in nats, if the metric is another quantity
  /// The mean share of heads of each layer; std::nullopt without head budgets.
  std::optional<std::vector<double>> head_share = {};
};

/// Options of a forward pass over a batch.
struct BatchView {
  Probe* probe = nullptr;          ///< observes every layer; may be null
  Auxiliary* auxiliary = nullptr;  ///< collects the layers' auxiliary losses; null: they add none
  int64_t rows = 0;                ///< number of the batch's first rows to use; 0: all
};

class Objective {
 public:
  virtual ~Objective() = default;

  /// Opens the data, fills in the recipe's fields that depend on it, and checks both. Called once, before all else.
  /// @throws InputError for data and recipes that cannot be used.
  virtual void open(Recipe& recipe) = 0;
  /// Makes the model without initialising its weights. @param type  dtype of matrix products.
  virtual void make_model(const Recipe& recipe, torch::ScalarType type) = 0;

  /// Takes the number of optimizer steps done, for what changes in the course of a training. Called after each step and
  /// when a run begins or is resumed.
  virtual void set_step(int64_t) {}

  /// All trained weights.
  virtual std::vector<WeightEntry> weights() const = 0;
  /// The input of the head for a batch of train.batch_rows rows. Batches are numbered from the beginning of the run;
  /// batch n depends on the data, the recipe and n alone.
  virtual torch::Tensor forward(int64_t batch, const BatchView& view) = 0;
  /// The mean loss of a whole batch, a differentiable scalar. @param hidden  the result of forward().
  virtual torch::Tensor loss(int64_t batch, const torch::Tensor& hidden) = 0;
  /// The number of labels that loss() averages over. By default all batches have as many.
  virtual int64_t labels(int64_t) { return 1; }

  /// The mean share of heads of each layer in the last forward pass; empty without head budgets.
  virtual std::vector<double> head_share() const { return {}; }

  virtual Metric metric() const { return {}; }
  /// Returns true if there is validation data.
  virtual bool has_validation() const = 0;
  /// @return  std::nullopt if a stop signal arrived (core/stop.h).
  virtual std::optional<Validation> validate() = 0;

  /// Identifies the data, so that a resumed run notices a change.
  virtual std::string fingerprint() const = 0;
  /// Adds the tokenizer and the validation data, if any, to the run's first record. Sweeps and reports use them to
  /// decide which runs may be compared.
  virtual void describe(StartRecord&) const {}
  /// Notes for the user, shown before the training starts.
  virtual std::vector<std::string> notes() const { return {}; }

  /// Number of parameters that inference uses; a shared weight counts once.
  int64_t parameters() const;
  /// FLOPs of a forward pass per token. By default those of the products with weights.
  virtual int64_t flops_per_token() const;
  /// The same per token or example, whichever the training counts. By default those per token.
  virtual double flops_per_unit() const { return static_cast<double>(flops_per_token()); }
  /// The tokenizer of the data; null if it has none.
  virtual const Tokenizer* tokenizer() const { return nullptr; }
  /// Initialises the weights at random, or from the recipe's `init` and `init_embedding`.
  virtual void initialise(const Recipe& recipe);
  /// Save and load the model's part of a checkpoint, by default model.safetensors.
  virtual void save(const std::filesystem::path& folder) const;
  virtual void load(const std::filesystem::path& folder);

  virtual std::vector<SampleRecord> samples() { return {}; }
  /// The recipe's final measurements. @return  std::nullopt if a stop signal arrived.
  virtual std::optional<std::vector<RunRecord>> measure_finals() { return std::vector<RunRecord>(); }
};

/// The objective of a recipe.
std::unique_ptr<Objective> make_objective(const Recipe& recipe);

}  // namespace prism
