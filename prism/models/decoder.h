// The decoder-only language model: a trunk and a language-model head.
//
//   Decoder decoder(config);
//   decoder->initialise(seed);
//   auto hidden = decoder(tokens_BT, ForwardContext{});
//   auto loss = decoder->head.loss(hidden, labels_BT);             // training: the full logits never exist at once
//   auto next = decoder->head.logits(hidden.narrow(1, T - 1, 1));  // generation: one row
#pragma once

#include <optional>

#include "prism/models/language_model_head.h"
#include "prism/models/model_handle.h"

namespace prism {

class DecoderImpl : public Trunk {
 public:
  /// Does not initialise the weights. @param config  must be complete.
  explicit DecoderImpl(const ModelConfig& config);

  void visit(WeightVisitor& v) const override;

  LanguageModelHead head;
  std::optional<LanguageModelHead> skip_head;  ///< predicts the token config().skip ahead; for training alone
};

using Decoder = ModelHandle<DecoderImpl>;

}  // namespace prism
