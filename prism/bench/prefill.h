// Compares the speed of attention over a prompt: sparse with several selectors, dense, and LibTorch's. All take turns
// in one process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "prism/bench/synthetic_heads.h"
#include "prism/core/fields.h"
#include "prism/sparse/prefill_cost.h"

namespace prism {

/// A selector with its settings.
struct PrefillMethod {
  std::string selector;
  Json settings = Json::object();
};

/// Parses "spectral" or "spectral:p=0.9,block_size=64". @throws InputError for other forms or names.
PrefillMethod parse_prefill_method(const std::string& text);

struct PrefillBench {
  std::vector<PrefillMethod> methods;
  SyntheticMix mix;
  std::string mix_name = "noise";
  std::string dtype = "bfloat16";
  PrefillCosts costs = {};  ///< used by the selector `auto`
  int64_t tokens = 8192;
  int64_t rounds = 0;           ///< rounds; 0: 15, or 3 from 32k tokens on
  int64_t sdpa_tokens = 16384;  ///< LibTorch's attention is timed for prompts up to this length
  int64_t recall_rows = 8;      ///< rows per head with exact attention, for the recall; 0: none
  bool is_timed = true;         ///< else the blocks are chosen once, and every time is 0
};

/// What a selector keeps of one head.
struct PrefillHead {
  double density = 1, recall = 0, oracle_density = 0;
  template <class Visitor>
  void visit(Visitor& v) {
    v("density", density, "kept blocks as a share of visible blocks");
    v("recall", recall, "share of the exact attention in the kept blocks, on sampled rows; 0: not measured");
    v("oracle_density", oracle_density, "density of the best choice of blocks with that recall; 0: not measured");
  }
};

/// One line of a table, or of JSON.
struct PrefillTiming {
  std::string bench = "prefill", selector, mix;
  Json settings = Json::object();
  std::string dtype;
  int64_t tokens = 0, heads = 0, kv_heads = 0, head_dim = 0, rounds = 0;
  double density = 1, unrounded_density = 0, recall = 0, recall_p5 = 0, oracle_density = 0, select_ms = 0,
         attend_ms = 0, dense_ms = 0, sdpa_ms = 0, speedup = 0;
  int64_t extra_bytes = 0;
  std::vector<PrefillHead> by_head;
  template <class Visitor>
  void visit(Visitor& v) {
    v("bench", bench, "prefill");
    v("selector", selector, "what chose the blocks");
    v("settings", settings, "its settings");
    v("mix", mix, "synthetic heads: the name of their file, or noise");
    v("dtype", dtype, "bfloat16 or float32");
    v("tokens", tokens, "tokens of the prompt");
    v("heads", heads, "query heads");
    v("kv_heads", kv_heads, "key/value heads");
    v("head_dim", head_dim, "width of a head");
    v("rounds", rounds, "measurements of each method; 0: nothing was timed, and all times are 0");
    v("density", density, "kept blocks as a share of visible blocks");
    v("unrounded_density", unrounded_density,
      "density of single keys and distances before rounding up to blocks; 0: the method chooses blocks");
    v("recall", recall, "share of the exact attention in the kept blocks, on sampled rows; 0: not measured");
    v("recall_p5", recall_p5, "5th percentile of recall over these queries; 0: not measured");
    v("oracle_density", oracle_density, "density of the best choice of blocks with that recall; 0: not measured");
    v("select_ms", select_ms, "median milliseconds to choose the blocks");
    v("attend_ms", attend_ms, "median milliseconds to attend to the kept blocks");
    v("dense_ms", dense_ms, "median milliseconds to attend to all keys");
    v("sdpa_ms", sdpa_ms, "median milliseconds of LibTorch's scaled_dot_product_attention; 0: not measured");
    v("speedup", speedup, "dense_ms / (select_ms + attend_ms)");
    v("extra_bytes", extra_bytes, "peak memory that choosing the blocks took; 0 if untimed");
    v("by_head", by_head, "density, recall and oracle_density of each query head");
  }
};

/// Checks the options before anything is measured. @throws InputError for unknown names and invalid settings or sizes.
void check_prefill_bench(const PrefillBench& bench);

/// The shapes whose costs bench_prefill() looks up.
std::vector<PrefillShape> cost_shapes(const PrefillBench& bench);

/// Times causal attention over a prompt of one sequence, unless that is not wanted; one row per method. Inputs come
/// from make_synthetic_heads().
std::vector<PrefillTiming> bench_prefill(const PrefillBench& bench);

}  // namespace prism
