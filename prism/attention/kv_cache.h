// Key/value cache. Each layer has its own number and width of heads. Layers with a head budget store only the heads
// that the prompt decided to compute.
//
//   KvCache cache(config.layers, /*batch=*/1, /*capacity=*/1024, torch::kBFloat16);
//   context.cache = &cache;     // each layer appends; then the model advances the cache
#pragma once

#include <memory>
#include <vector>

#include "prism/attention/budget/head_weights.h"
#include "prism/attention/layer_config.h"
#include "prism/kernels/attention/attend.h"

namespace prism {

class SelectorState;

/// Bytes of keys and values of `tokens` positions in all layers, if every head is computed.
int64_t kv_cache_bytes(const std::vector<LayerConfig>& layers, int64_t tokens, int64_t element_bytes);

class KvCache {
 public:
  KvCache(const std::vector<LayerConfig>& layers, int64_t batch, int64_t capacity, torch::ScalarType type,
          const torch::Device& device = torch::kCPU);
  ~KvCache();
  KvCache(const KvCache&) = delete;
  KvCache& operator=(const KvCache&) = delete;

  /// Stores new keys [B, G, T, D] and values of one layer. Returns all keys and values of the layer, new ones included.
  /// A layer with a head budget may have another number of rows and heads (packed_heads.h); its first keys determine
  /// them.
  /// @throws InputError if the capacity is exceeded.
  KeyValues append(size_t layer, const torch::Tensor& k_BGTD, const torch::Tensor& v_BGTD);
  /// Adds the `tokens` appended positions to length(). Call it once all layers have appended.
  void advance(int64_t tokens);
  /// Drops all positions from `length` on.
  void truncate(int64_t length);
  /// Makes room for `capacity` positions, at least as many as before. All that is stored is kept.
  void grow(int64_t capacity);

  /// Stores the positions in words (int64) of the tokens that are being appended. Call it before advance().
  /// @throws InputError if the capacity is exceeded.
  void append_words(const torch::Tensor& word_positions_BT);
  /// For each row, the number of tokens of the word that its next token may continue; undefined while the cache is
  /// empty, or if no positions in words are stored.
  torch::Tensor word_opening() const;

  int64_t length() const { return length_; }
  /// Positions for which there is room.
  int64_t capacity() const { return capacity_; }
  /// What a layer's head budget decided for the prompt; undefined before that, and without a budget.
  HeadWeights& head_weights(size_t layer) { return layers_.at(layer).head_weights; }
  /// The state of a layer's selector, which is truncated together with the cache; null until the selector sets it.
  std::unique_ptr<SelectorState>& selector_state(size_t layer) { return layers_.at(layer).selector_state; }

 private:
  struct Layer {
    torch::Tensor k_BGSD, v_BGSD;
    std::unique_ptr<SelectorState> selector_state;
    HeadWeights head_weights;
    bool has_budget = false;
  };
  /// The length after appending. @throws InputError if the capacity is exceeded.
  int64_t end_after(int64_t tokens) const;
  /// Uninitialised keys or values.
  torch::Tensor make(int64_t values) const;

  std::vector<Layer> layers_;
  torch::Tensor word_positions_BS_;  ///< [B, capacity], made by the first append_words()
  int64_t capacity_, length_ = 0;
  torch::TensorOptions options_;
};

}  // namespace prism
