#include "prism/models/decoder.h"

#include "prism/layers/initialise.h"
#include "prism/models/cost.h"

namespace prism {

DecoderImpl::DecoderImpl(const ModelConfig& config)
    : Trunk(config),
      head(config.tied ? LanguageModelHead(embedding.weight) : LanguageModelHead(config.d_model, config.vocab_size)) {}

void DecoderImpl::visit(WeightVisitor& v) const {
  Trunk::visit(v);
  v.module("head", "lm_head", head);
}

void DecoderImpl::initialise(uint64_t seed) {
  prism::initialise(weights(), initialisation_of(config()), seed);
}

Decoder::Decoder(const ModelConfig& config) : impl_(std::make_shared<DecoderImpl>(config)) {
  check_memory(model_cost(*impl_).parameters, sizeof(float));
}

}  // namespace prism
