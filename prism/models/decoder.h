// The decoder-only language model: a trunk and a language-model head.
//
//   Decoder decoder(config);
//   decoder->initialise(seed);
//   auto hidden = decoder(tokens_BT, ForwardContext{});
//   auto loss = decoder->head.loss(hidden, labels_BT);             // training: the full logits never exist at once
//   auto next = decoder->head.logits(hidden.narrow(1, T - 1, 1));  // generation: one row
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "prism/models/language_model_head.h"
#include "prism/models/trunk.h"

namespace prism {

class DecoderImpl : public Trunk {
 public:
  /// Does not initialise the weights. @param config  must be complete.
  explicit DecoderImpl(const ModelConfig& config);

  /// Initialises the weights by the config's `initialisation` (layers/initialise.h).
  void initialise(uint64_t seed);

  /// All weights; shared ones appear once.
  std::vector<WeightEntry> weights() const { return weights_of(*this); }
  void visit(WeightVisitor& v) const;

  LanguageModelHead head;
};

/// A handle: copies refer to the same model.
class Decoder {
 public:
  /// An empty handle without a model.
  Decoder(std::nullptr_t) {}  // NOLINT(google-explicit-constructor): as modules of LibTorch have it
  /// @throws InputError if the weights do not fit into memory.
  explicit Decoder(const ModelConfig& config);

  explicit operator bool() const { return impl_ != nullptr; }
  DecoderImpl* operator->() const { return impl_.get(); }
  DecoderImpl& operator*() const { return *impl_; }

  /// Calls Trunk::forward().
  torch::Tensor operator()(const torch::Tensor& tokens_BT, const ForwardContext& context) const {
    return impl_->forward(tokens_BT, context);
  }

 private:
  std::shared_ptr<DecoderImpl> impl_;
};

}  // namespace prism
