// Synthetic queries and keys with known attention: sinks, slashes, needles and noise.
//
//   const SyntheticMix mix = fields_from_json<SyntheticMix>(read_json("benchmarks/mixes/structured.json"), "mix");
//   const SyntheticHeads heads = make_synthetic_heads(mix, 131072, torch::kBFloat16);
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "prism/kernels/rotary_pairs.h"

namespace prism {

/// Every query attends to the key at a fixed distance.
struct SlashPattern {
  int64_t distance = 0;
  double strength = 0;
  template <class Visitor>
  void visit(Visitor& v) {
    v("distance", distance, "how many tokens back the head looks; 0: at the query's own token and those near it");
    v("strength", strength, "score of the key at that distance, before the softmax");
  }
};

/// The attention pattern of one query head. Strengths are scores before the softmax; 0 disables a pattern.
struct SyntheticHead {
  double sink = 0, needle = 0, topic = 0;
  int64_t needles = 0;
  std::vector<SlashPattern> slashes = {};
  template <class Visitor>
  void visit(Visitor& v) {
    v("sink", sink, "score of the first four keys with every query");
    v("needles", needles,
      "number of needles: stretches of 32 keys far back, each looked for by a later stretch of 256 queries");
    v("needle", needle, "score of a needle (see needles) with the queries that look for it");
    v("topic", topic,
      "score of keys of the query's topic; each stretch of 128 tokens has one of eight topics at random");
    v("slashes", slashes, "distances that every query looks back");
  }
};

struct SyntheticMix {
  int64_t seed = 1, head_dim = 128, kv_heads = 1;
  double base = 1e6, noise = 0.5;
  std::vector<SyntheticHead> heads = {};
  template <class Visitor>
  void visit(Visitor& v) {
    v("seed", seed, "seed of all random values");
    v("head_dim", head_dim, "width of a head, a multiple of 16");
    v("kv_heads", kv_heads, "key/value heads, a divisor of the number of query heads");
    v("base", base, "base of the rotary angles");
    v("noise", noise, "standard deviation of the normal noise in each feature of queries and keys");
    v("heads", heads, "what each query head looks at");
  }
};

struct SyntheticHeads {
  torch::Tensor q_BTHD, k_BGSD, v_BGSE;  ///< one sequence; values are standard normal
  RotaryPairs pairs;
};

/// @throws InputError for no heads, a number of heads that kv_heads does not divide, a width that is not a multiple of
///         16, strengths beyond 10^4, or sinks, needles or topics if fewer than two pairs turn by at most half a radian
///         over the prompt.
void check_synthetic_mix(const SyntheticMix& mix, int64_t tokens);

/// Draws queries, keys and values of one prompt.
///
/// Slashes: before the rotary encoding, every key is noise plus one direction in the fast 5/8 of the pairs. Every query
/// is noise plus, for each slash, that direction turned by -distance theta_j in each pair j. Their score depends only
/// on the distance between query and key. It is largest at the slash's distance, where it equals the strength if there
/// is no other slash.
///
/// Sinks, needles and topics: directions in the pairs that turn by at most half a radian over the whole prompt. Their
/// scores equal the strengths at small distances and are at most an eighth lower at the largest. Queries that look for
/// a needle may be anywhere after its first key.
///
/// @throws as check_synthetic_mix().
SyntheticHeads make_synthetic_heads(const SyntheticMix& mix, int64_t tokens, torch::ScalarType type);

}  // namespace prism
