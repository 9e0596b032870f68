// Prefill: how attention over a prompt is computed, all of it or what a selector keeps, and what came of it.
//
//   Prefill prefill({.selector = "spectral", .settings = {{"p", 0.9}}});
//   context.cache = &cache;
//   context.prefill = &prefill;
//   decoder(tokens_BT, context);
//   prefill.layers()[3].heads[0].density();
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "prism/attention/kv_cache.h"
#include "prism/sparse/mask_statistics.h"
#include "prism/sparse/selectors.h"

namespace prism {

struct PrefillOptions {
  std::string selector = "dense";
  Json settings = Json::object();
  int64_t chunk = 0, recall_rows = 0;
  template <class Visitor>
  void visit(Visitor& v) {
    v("selector", selector,
      "attention over a prompt: dense, or over the key blocks of a selector (prism attend --help)");
    v("settings", settings, "fields of the selector's settings");
    v("chunk", chunk, "tokens of a prompt that are computed at once; 0: all");
    v("recall_rows", recall_rows,
      "also measure how much of the exact attention is kept, on so many rows of blocks of every head and chunk");
  }
};

/// One layer, over all calls.
struct LayerPrefill {
  std::vector<HeadStatistics> heads;
  double select_seconds = 0, attend_seconds = 0;
  double measure_seconds = 0;  ///< for density and recall, which nobody needs who only attends

  HeadStatistics all_heads() const;
};

class Prefill {
 public:
  /// @throws InputError for a selector, settings or numbers that do not exist or make no sense.
  explicit Prefill(const PrefillOptions& options);

  /// attend() over what the selector keeps.
  ///
  /// @param cache  keeps the selector's state from chunk to chunk; null: the call is a whole prompt.
  /// @param pairs  of the layer's heads.
  /// @param prompt_length  as in SelectorInput.
  /// @throws InputError for several documents in a row, which selectors do not know, and as attend() and select().
  AttentionOutput attend(size_t layer, AttentionInput input, const RotaryPairs& pairs, KvCache* cache,
                         int64_t prompt_length, AttentionBackend backend);

  const PrefillOptions& options() const { return options_; }
  /// By layer; empty before the first call.
  const std::vector<LayerPrefill>& layers() const { return layers_; }

 private:
  PrefillOptions options_;
  std::unique_ptr<Selector> selector_;
  std::vector<LayerPrefill> layers_;
};

/// Sums over layers.
LayerPrefill all_layers(const std::vector<LayerPrefill>& layers);

}  // namespace prism
