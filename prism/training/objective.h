// What a model is trained for: its data, its loss, what it is validated by. The trainer knows no more of it.
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
#include "prism/training/recipe.h"

namespace prism {

struct Validation {
  double value = 0;    ///< of the figure
  int64_t tokens = 0;  ///< that it was measured on
};

/// How a forward pass over a batch is made.
struct BatchView {
  Probe* probe = nullptr;          ///< looks at what every layer has; null: none
  Auxiliary* auxiliary = nullptr;  ///< collects what layers add to the loss; null: they add nothing
  int64_t rows = 0;                ///< of the batch, the first; 0: all
};

class Objective {
 public:
  virtual ~Objective() = default;

  /// Reads the data, completes the recipe by it and checks what the recipe asks of both. Called once, first.
  /// @throws InputError for data and recipes that cannot be used.
  virtual void open(Recipe& recipe) = 0;
  /// Makes the model, whose weights are not drawn. @param type  of matrix products.
  virtual void make_model(const Recipe& recipe, torch::ScalarType type) = 0;

  /// All that is trained.
  virtual std::vector<WeightEntry> weights() const = 0;
  /// What the head reads of a batch of train.batch_rows rows. Batches are numbered from the beginning of the run, and
  /// batch n is a function of (data, recipe, n) alone.
  virtual torch::Tensor forward(int64_t batch, const BatchView& view) = 0;
  /// The mean loss of a whole batch, a scalar through which gradients flow. @param hidden  forward()'s.
  virtual torch::Tensor loss(int64_t batch, const torch::Tensor& hidden) = 0;

  virtual Figure figure() const { return {}; }
  /// Whether there is anything to validate on.
  virtual bool has_validation() const = 0;
  /// @return  nothing if a stop signal came (core/stop.h).
  virtual std::optional<Validation> validate() = 0;

  /// Names the data, so that a resumed run notices other data.
  virtual std::string fingerprint() const = 0;
  /// Adds what the run's first record says of the data, by which sweeps and reports tell what may be compared: the
  /// tokenizer, and the validation data if there are any.
  virtual void describe(StartRecord&) const {}
  /// What the user should know before the training starts.
  virtual std::vector<std::string> notes() const { return {}; }

  /// Distinct ones, of all weights.
  int64_t parameters() const;
  /// Of a token in a forward pass. By default the products with weights.
  virtual int64_t flops_per_token() const;
  /// Draws the weights, or takes those of the recipe's `init`.
  virtual void initialise(const Recipe& recipe);
  /// Writes what a checkpoint holds of the model, and reads it: by default model.safetensors.
  virtual void save(const std::filesystem::path& folder) const;
  virtual void load(const std::filesystem::path& folder);

  virtual std::vector<SampleRecord> samples() { return {}; }
  /// What the recipe wants measured when the training ends. @return  nothing if a stop signal came.
  virtual std::optional<std::vector<RunRecord>> measure_finals() { return std::vector<RunRecord>(); }
};

/// The objective that a recipe is trained for.
std::unique_ptr<Objective> make_objective(const Recipe& recipe);

}  // namespace prism
