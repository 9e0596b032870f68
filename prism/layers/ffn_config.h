// Configuration of a block's feed-forward part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace prism {

struct FfnConfig {
  std::string kind = "swiglu";
  int64_t width = 0, depth = 1;
  bool bias = false, gate_bias = false;
  template <class Visitor>
  void visit(Visitor& v) {
    v("kind", kind, feed_forward_help());
    v("width", width, "hidden width");
    v("depth", depth, "relu: number of hidden layers; each computes max(0, W x) from the one before");
    v("bias", bias, "every projection has a bias; not available with g2lu");
    v("gate_bias", gate_bias, "g2lu: W_inner has a bias, as in models that prism convert --graft g2lu makes");
  }

 private:
  /// The formula of each kind.
  static const char* feed_forward_help();
};

/// @throws InputError naming the layer for an unknown kind, a width or depth below 1, or an option the kind does not
///         support.
void check(const FfnConfig& config, size_t layer);

}  // namespace prism
