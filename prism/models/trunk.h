// The embedding and the stack of blocks: maps tokens to hidden states. A model is a trunk with a head that reads these
// (decoder.h, classifier.h).
//
//   Trunk trunk(config);
//   trunk.initialise(seed);
//   auto hidden = trunk.forward(tokens_BT, ForwardContext{});
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "prism/layers/embedding.h"
#include "prism/layers/initialise.h"
#include "prism/models/block.h"
#include "prism/models/model_config.h"

namespace prism {

/// The initialisation settings of a config.
Initialisation initialisation_of(const ModelConfig& config);

// B batch, T positions
class Trunk {
 public:
  /// Does not initialise the weights. @param config  must be complete.
  explicit Trunk(ModelConfig config);
  virtual ~Trunk() = default;

  /// Initialises all weights, those of the head included, by the config's `initialisation` (layers/initialise.h).
  void initialise(uint64_t seed);

  /// tokens_BT int64 -> hidden [B, T, d_model] after the last norm, in the compute dtype. Extends the cache in
  /// `context`, if any.
  /// @throws InputError for ids outside the vocabulary, more positions than the context, or word positions without
  ///         word starts.
  torch::Tensor forward(const torch::Tensor& tokens_BT, const ForwardContext& context) const;

  /// The dtype of matmuls and attention: bfloat16 or float32 (float64 for models of float64). Weights, residual stream,
  /// norms and losses stay in the weights' dtype.
  void set_compute_type(torch::ScalarType type) { compute_type_ = type; }
  torch::ScalarType compute_type() const { return compute_type_; }
  /// If set, layers recompute their activations in the backward pass instead of keeping them (recompute.h).
  void set_recompute(bool recomputes) { recomputes_ = recomputes; }
  /// Sets the temperature of head budgets outside training, which the config holds.
  void set_budget_tau(double tau) { config_.budget_tau = tau; }
  /// Gives a layer the handles of another layer's W_up and W_down. Both must be made to share them (mirror_of).
  void share_pair(size_t owner, size_t user) const;
  /// Tells layers with word positions which ids start a word (Tokenizer::word_starts()); forward() needs it then.
  /// @param starts  one for each id; the ids of the vocabulary that it leaves out continue words.
  void set_word_starts(std::vector<uint8_t> starts);
  const std::vector<uint8_t>& word_starts() const { return word_starts_; }
  /// ForwardContext::word_opening_B for a row that follows these tokens; 0 without word positions.
  int64_t word_opening(std::span<const int32_t> before) const;
  /// The device of the weights. forward() copies tokens and contexts to it.
  torch::Device device() const { return embedding.weight.device(); }

  /// Packs the weights of all products and the embedding in bfloat16, for inference on the CPU: no gradients, no files,
  /// no values. What a head budget reads stays as it is.
  void freeze() const;
  /// Returns true if freeze() packs this weight.
  bool freezes(const WeightEntry& entry) const;

  /// All weights, those of the head included; shared ones appear once.
  std::vector<WeightEntry> weights() const { return weights_of(*this); }
  virtual void visit(WeightVisitor& v) const;
  const ModelConfig& config() const { return config_; }

  Embedding embedding;
  Embedding positions;  ///< [context, d_model]; empty unless learned_positions
  std::vector<std::shared_ptr<Block>> blocks;
  Norm norm;  ///< LayerNorm if all layers have LayerNorms, else RMSNorm; empty unless final_norm

 private:
  /// The residual stream before the first layer.
  torch::Tensor embed(const torch::Tensor& tokens_BT, const ForwardContext& context) const;
  /// Begins a step of the cache for these tokens, and sets their positions.
  void begin_step(ForwardContext& context, const torch::Tensor& tokens_BT) const;
  /// @throws InputError for more positions than the context.
  void check_positions(int64_t count) const;

  /// The position of each token in its word; undefined without word positions. Adds them to the cache.
  torch::Tensor find_word_positions(const torch::Tensor& tokens_BT, const ForwardContext& context) const;

  ModelConfig config_;
  std::vector<uint8_t> word_starts_;    ///< 1 where an id starts a word; empty: unknown
  mutable torch::Tensor sinusoids_TD_;  ///< [context, d_model], made when first needed
  torch::ScalarType compute_type_ = torch::kFloat;
  bool recomputes_ = false;
};

}  // namespace prism
