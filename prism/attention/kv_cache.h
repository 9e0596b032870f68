// Keys and values of the positions already computed, layer by layer, as wide as each layer's heads.
//
//   KvCache cache(config.layers, /*batch=*/1, /*capacity=*/1024, torch::kBFloat16);
//   context.cache = &cache;     // the layers append; the model advances when all have
#pragma once

#include <memory>
#include <vector>

#include "prism/attention/layer_config.h"
#include "prism/kernels/attend.h"

namespace prism {

class SelectorState;

/// Bytes of keys and values for `tokens` positions over all layers.
int64_t kv_cache_bytes(const std::vector<LayerConfig>& layers, int64_t tokens, int64_t element_bytes);

class KvCache {
 public:
  KvCache(const std::vector<LayerConfig>& layers, int64_t batch, int64_t capacity, torch::ScalarType type,
          const torch::Device& device = torch::kCPU);
  ~KvCache();
  KvCache(const KvCache&) = delete;
  KvCache& operator=(const KvCache&) = delete;

  /// Stores one layer's new keys [B, G, T, D] and values and returns all of the layer's, new ones included.
  /// @throws InputError when the capacity is exceeded.
  KeyValues append(size_t layer, const torch::Tensor& k_BGTD, const torch::Tensor& v_BGTD);
  /// Makes the `tokens` appended positions part of the past; called once all layers have appended.
  void advance(int64_t tokens);
  /// Forgets all positions from `length` on.
  void truncate(int64_t length);

  int64_t length() const { return length_; }
  /// What a layer's selector keeps of the past, which is forgotten with it; null until the selector puts it there.
  std::unique_ptr<SelectorState>& selector_state(size_t layer) { return layers_.at(layer).selector_state; }

 private:
  struct Layer {
    torch::Tensor k_BGSD, v_BGSD;
    std::unique_ptr<SelectorState> selector_state;
  };
  std::vector<Layer> layers_;
  int64_t capacity_, length_ = 0;
};

}  // namespace prism
