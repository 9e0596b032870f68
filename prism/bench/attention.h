// Compares the speed of attend() and LibTorch's scaled_dot_product_attention for a shape, in one process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "prism/bench/measure.h"

namespace prism {

// B batch, H query heads, G key/value heads, T queries, S keys, D head width
struct AttentionShape {
  int64_t batch = 1, heads = 12, kv_heads = 0, tokens = 1024, keys = 0, head_dim = 64;
  std::string lengths = "full";
  template <class Visitor>
  void visit(Visitor& v) {
    v("batch", batch, "sequences");
    v("heads", heads, "query heads");
    v("kv_heads", kv_heads, "key/value heads, a divisor of heads; 0: as many as heads");
    v("tokens", tokens, "queries");
    v("keys", keys, "keys, at least as many as queries; 0: as many as queries");
    v("head_dim", head_dim, "width of a head");
    v("lengths", lengths, "full, or ragged: sequence b of B has (b + 1) / B of the tokens and keys");
  }
};

/// One line of a table, or of JSON.
struct AttentionTiming {
  std::string bench = "attention", pass, dtype;
  int64_t batch = 0, heads = 0, kv_heads = 0, tokens = 0, keys = 0, head_dim = 0;
  std::string lengths, backend;
  double prism_ms = 0;
  std::string peer = "sdpa";
  double peer_ms = 0, ratio = 0, peak_share = 0;
  template <class Visitor>
  void visit(Visitor& v) {
    v("bench", bench, "attention or decode");
    v("pass", pass, "forward, forward_backward or decode");
    v("dtype", dtype, "bfloat16 or float32");
    v("batch", batch, "sequences");
    v("heads", heads, "query heads");
    v("kv_heads", kv_heads, "key/value heads");
    v("tokens", tokens, "queries");
    v("keys", keys, "keys");
    v("head_dim", head_dim, "width of a head");
    v("lengths", lengths, "full or ragged");
    v("backend", backend, "backend of attend(): flash (prism's own kernels), torch or reference");
    v("prism_ms", prism_ms, "median milliseconds of attend()");
    v("peer", peer, "what prism is compared with");
    v("peer_ms", peer_ms, "median milliseconds of the peer");
    v("ratio", ratio, "peer_ms / prism_ms");
    v("peak_share", peak_share,
      "share of the limit: of the CPU's products, or for decoding, of a plain loop that reads as much");
  }
};

struct AttentionBench {
  std::string dtype = "bfloat16", pass = "forward";  ///< forward, forward_backward or decode
  int64_t rounds = 5;
  int threads = 1;
  int64_t decode_bytes = int64_t{1} << 30;  ///< bytes of distinct keys and values that decoding cycles through
};

/// The shape with its defaults filled in.
/// @throws InputError for invalid shapes or names, and for tensors that exceed the memory.
AttentionShape check_attention_bench(const AttentionShape& shape, const AttentionBench& bench);

/// Times causal attention of one shape.
///
/// forward, forward_backward: peak_share is the share of the CPU's matrix-product peak, at 4 D FLOPs per visible pair
/// of query and key (14 D with the backward pass). decode: keys and values are in a KV cache and each call reads
/// different ones, so that they come from memory and not from CPU caches. A plain loop that reads the same memory is
/// timed in turn and is the limit for peak_share.
/// @throws InputError as check_attention_bench().
AttentionTiming bench_attention(const AttentionShape& shape, const AttentionBench& bench);

}  // namespace prism
