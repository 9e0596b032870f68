// How an analysis looks at attention while a model runs, without the model knowing of it.
//
//   class Longest : public AttentionProbe {
//     void observe(size_t layer, const AttentionInput& input) override { ... }
//   };
//   Longest probe;
//   context.probe = &probe;
//   decoder(tokens_BT, context);             // observe() is called by every layer, first to last
#pragma once

#include <cstddef>

#include "prism/kernels/attend.h"

namespace prism {

class AttentionProbe {
 public:
  virtual ~AttentionProbe() = default;

  /// Called by each layer of each forward pass with what it is about to give attend(): rotated queries, all keys and
  /// values (those of a cache included), lengths and documents. What it needs of `input` later it must copy.
  ///
  /// @param layer  from 0.
  virtual void observe(size_t layer, const AttentionInput& input) = 0;
};

}  // namespace prism
