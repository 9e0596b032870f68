// A model that assigns each sequence to one of several classes: a trunk and a classification head.
//
//   Classifier classifier(config);
//   classifier->initialise(seed);
//   auto hidden = classifier(tokens_BT, {.lengths_B = lengths_B});
//   auto logits = classifier->head.logits(hidden, lengths_B);
//   auto loss = classifier->head.loss(logits, labels_B);
#pragma once

#include "prism/models/classification_head.h"
#include "prism/models/model_handle.h"

namespace prism {

class ClassifierImpl : public Trunk {
 public:
  /// Does not initialise the weights. @param config  must be complete, with at least two classes.
  explicit ClassifierImpl(const ModelConfig& config);

  void visit(WeightVisitor& v) const override;

  ClassificationHead head;
};

using Classifier = ModelHandle<ClassifierImpl>;

}  // namespace prism
