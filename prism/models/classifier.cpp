#include "prism/models/classifier.h"

namespace prism {

ClassifierImpl::ClassifierImpl(const ModelConfig& config)
    : Trunk(config), head(config.d_model, config.classes, find_pooling(config.pooling)) {}

void ClassifierImpl::visit(WeightVisitor& v) const {
  Trunk::visit(v);
  v.module("head", "classifier", head);
}

}  // namespace prism
