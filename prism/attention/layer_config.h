// Configuration of one layer. A model is a list of layers, so no code reads "the" head count of a model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "prism/attention/budget/budget_config.h"
#include "prism/attention/rotary.h"
#include "prism/layers/ffn_config.h"

namespace prism {

/// To add a field, add a member and a line in visit_common(). Recipes, their shorthand and config.json then have it
/// too.
struct LayerConfig {
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  RotaryConfig rotary;
  FfnConfig ffn;
  bool qk_norm = false;
  int64_t window = 0;
  std::string norm = "rms", norm_place = "pre";
  bool qkv_bias = false, output_projection = true, output_bias = false;
  BudgetConfig budget = {};
  int64_t mirror_of = -1;
  template <class Visitor>
  void visit(Visitor& v) {
    v("heads", heads, "query heads");
    v("kv_heads", kv_heads, "key/value heads, a divisor of heads");
    v("mirror_of", mirror_of,
      "an earlier layer, counted from 0, whose projections W_up and W_down the feed-forward part uses; -1: its own");
    visit_common(v);
  }
  /// All fields except those that the shorthand sets layer by layer: head counts and mirror_of.
  template <class Visitor>
  void visit_common(Visitor& v) {
    v("head_dim", head_dim, "width of a head; 0: d_model / heads");
    v("rotary", rotary, "position encoding of queries and keys");
    v("ffn", ffn, "feed-forward part");
    v("qk_norm", qk_norm,
      "RMSNorm on every query and key head before the rotary encoding; one gain for queries, one for keys");
    v("window", window,
      "sliding window: a token attends to itself and the window - 1 tokens before it; 0: to all tokens before it");
    v("norm", norm, "norm at attention and at the feed-forward part: rms (RMSNorm), layer (LayerNorm) or none");
    v("norm_place", norm_place,
      "pre: normalise the input of attention and of the feed-forward part; post: normalise the residual stream after "
      "adding their outputs to it");
    v("qkv_bias", qkv_bias, "the projections W_Q, W_K and W_V have biases");
    v("output_projection", output_projection,
      "projection W_O after the heads; off: the concatenated outputs of the heads are added to the residual stream "
      "directly");
    v("output_bias", output_bias, "W_O has a bias");
    v("budget", budget, "head budget");
  }
};

}  // namespace prism
