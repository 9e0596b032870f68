// Measures a Prefill: the share of key blocks it keeps, the share of the exact attention they hold, and times.
//
//   PrefillMeter meter({.recall_rows = 8});
//   Prefill prefill({.selector = "spectral"}, costs, &meter);
//   ...
//   meter.layers()[3].heads[0].density();
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "prism/core/timer.h"
#include "prism/sparse/mask_statistics.h"

namespace prism {

struct PrefillMeterOptions {
  int64_t recall_rows = 0;
  template <class Visitor>
  void visit(Visitor& v) {
    v("recall_rows", recall_rows,
      "blocks of queries per head and chunk on which to measure recall, the share of exact attention that the kept "
      "blocks hold; 0: none");
  }
};

/// Measurements of one layer over all calls.
struct LayerPrefill {
  std::vector<HeadStatistics> heads;
  double select_seconds = 0, attend_seconds = 0;
  double measure_seconds = 0;  ///< spent in the meter itself

  HeadStatistics all_heads() const;
};

class PrefillMeter {
 public:
  /// @throws InputError for a negative number of rows.
  explicit PrefillMeter(const PrefillMeterOptions& options = {});

  /// Prefill calls these for each layer of each call, in this order.
  void before_select();
  void before_attend(size_t layer);
  void after_attend(size_t layer, const SelectorInput& seen, const BlockMask& mask);

  /// Measurements of each layer; empty before the first call.
  const std::vector<LayerPrefill>& layers() const { return layers_; }

 private:
  PrefillMeterOptions options_;
  Timer timer_;
  std::vector<LayerPrefill> layers_;
};

/// Sums over layers.
LayerPrefill all_layers(const std::vector<LayerPrefill>& layers);

}  // namespace prism
