#include "prism/models/decoder.h"

namespace prism {

DecoderImpl::DecoderImpl(const ModelConfig& config)
    : Trunk(config),
      head(config.tied ? LanguageModelHead(embedding.weight) : LanguageModelHead(config.d_model, config.vocab_size)) {
  if (config.skip > 0) skip_head = LanguageModelHead::for_training(config.d_model, config.vocab_size);
}

void DecoderImpl::visit(WeightVisitor& v) const {
  Trunk::visit(v);
  v.module("head", "lm_head", head);
  if (skip_head) v.module("skip_head", "skip_head", *skip_head);
}

}  // namespace prism
