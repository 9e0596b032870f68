// A small classifier for the texts of made_examples.h.
#pragma once

#include <string>

#include "prism/models/classifier.h"

namespace prism {

struct MadeClassifier {
  std::string budget = "none";
  int64_t context = 24, kv_heads = 4;
  double init_std = 0.02, share = 0.5;  ///< share: of budgets that are not learned
};

inline Classifier make_classifier(const MadeClassifier& made) {
  ModelConfig config;
  config.vocab_size = 257;
  config.d_model = 16;
  config.context = made.context;
  config.classes = 3;
  config.attention = "full";
  config.schedule = "4x2";
  config.kv_schedule = std::to_string(made.kv_heads) + "x2";
  config.ffn_width = 24;
  config.init_std = made.init_std;
  config.each.budget.kind = made.budget;
  config.each.budget.share = made.budget == "learned" ? 1 : made.share;
  expand_shorthand(config);
  complete(config);
  Classifier classifier(config);
  classifier->initialise(3);
  return classifier;
}

}  // namespace prism
