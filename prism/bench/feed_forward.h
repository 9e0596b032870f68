// Times feed-forward parts of several kinds in turn, forward and backward.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace prism {

struct FeedForwardShape {
  int64_t d_model = 1024, width = 1707, tokens = 4096;
  bool shares = false;  ///< W_up and W_down can be shared, as in mirrored layers
};

struct FeedForwardTiming {
  std::string kind, dtype;
  int64_t d_model = 0, width = 0, tokens = 0;
  bool shares = false;
  double forward_ms = 0, both_ms = 0, ratio = 0, peak_share = 0;
  template <class Visitor>
  void visit(Visitor& v) {
    v("kind", kind, "kind of feed-forward part");
    v("dtype", dtype, "dtype of the products");
    v("d_model", d_model, "input and output features");
    v("width", width, "hidden features");
    v("tokens", tokens, "rows of the input");
    v("shares", shares, "W_up and W_down are products of their own, as in layers that share them");
    v("forward_ms", forward_ms, "median milliseconds of the forward pass");
    v("both_ms", both_ms, "the same of the forward and backward pass");
    v("ratio", ratio, "both_ms over that of the first kind");
    v("peak_share", peak_share, "speed of both passes as a share of the CPU's peak for matrix products");
  }
};

/// @throws InputError for an unknown kind, or a shape out of range or too large for memory.
void check_feed_forward_bench(const std::vector<std::string>& kinds, const FeedForwardShape& shape);

/// @param kinds  feed-forward kinds (layers/feed_forward.h). @throws as check_feed_forward_bench().
std::vector<FeedForwardTiming> bench_feed_forward(const std::vector<std::string>& kinds, const FeedForwardShape& shape,
                                                  torch::ScalarType type, int64_t rounds, int threads);

}  // namespace prism
