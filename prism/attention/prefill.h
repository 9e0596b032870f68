// Prefill: attention over a prompt, dense or over the key blocks that a selector keeps.
//
//   Prefill prefill({.selector = "spectral", .settings = {{"p", 0.9}}});
//   context.cache = &cache;
//   context.prefill = &prefill;
//   decoder(tokens_BT, context);
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "prism/core/fields.h"
#include "prism/kernels/attention/attend.h"
#include "prism/sparse/prefill_cost.h"
#include "prism/sparse/selector.h"

namespace prism {

class PrefillMeter;

struct PrefillOptions {
  std::string selector = "dense";
  Json settings = Json::object();
  int64_t chunk = 0;
  template <class Visitor>
  void visit(Visitor& v) {
    v("selector", selector,
      "attention over a prompt: dense, or a selector of key blocks (prism attend --help lists them)");
    v("settings", settings, "settings of the selector");
    v("chunk", chunk, "tokens of a prompt computed at once; 0: all");
  }
};

class Prefill {
 public:
  /// @param costs  measured costs, which the selector `auto` uses to decide.
  /// @param meter  measures every call; null: nothing is counted or timed.
  /// @throws InputError for an unknown selector, unknown settings, or values out of range.
  explicit Prefill(const PrefillOptions& options, const PrefillCosts& costs = {}, PrefillMeter* meter = nullptr);

  /// attend() over the key blocks that the selector keeps.
  ///
  /// @param pairs  rotary pairs of the layer's heads.
  /// @param state  of the selector, kept between the chunks of a prompt; made by its first call.
  /// @param prompt_length  as in SelectorInput.
  /// @throws InputError for several documents in a row, which selectors do not support, and as attend() and select().
  AttentionOutput attend(size_t layer, AttentionInput input, const RotaryPairs& pairs,
                         std::unique_ptr<SelectorState>& state, int64_t prompt_length, AttentionBackend backend);

  const PrefillOptions& options() const { return options_; }
  /// Returns false for dense attention.
  bool selects() const { return options_.selector != "dense"; }
  /// As Selector::notes().
  std::vector<std::string> notes() const { return selector_->notes(); }

 private:
  PrefillOptions options_;
  std::unique_ptr<Selector> selector_;
  PrefillMeter* meter_;
};

}  // namespace prism
