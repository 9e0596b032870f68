// Models of a few hundred weights, and changes of their config.json that must be refused.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

#include "prism/checkpoint/config_json.h"
#include "prism/core/fields.h"
#include "prism/models/model_config.h"
#include "prism/tokenizer/bpe/train.h"
#include "tests/core/message_of.h"

namespace prism {

inline ModelConfig config_of(const std::string& schedule, bool tied = true) {
  ModelConfig config;
  config.vocab_size = 20;
  config.d_model = 16;
  config.context = 8;
  config.tied = tied;
  config.schedule = schedule;
  config.ffn_width = 12;
  config.allow_any = true;
  expand_shorthand(config);
  complete(config);
  return config;
}

inline Tokenizer tokenizer_of(const std::string& text) {
  bool read = false;
  const auto supply = [&](std::string& to) {
    to = text;
    return !std::exchange(read, true);
  };
  return train_bpe(supply, {.vocab_size = 260}, 1);
}

/// A rung of the ladder; its first layer also lacks the output projection.
inline ModelConfig rung() {
  ModelConfig config;
  config.vocab_size = 30;
  config.d_model = 16;
  config.context = 8;
  config.schedule = "2x2";
  config.ffn_width = 12;
  config.each.rotary.kind = "none";
  config.each.ffn = {.kind = "relu", .width = 0, .depth = 2, .bias = true};
  config.each.norm = "none";
  config.learned_positions = true;
  config.tied = config.final_norm = false;
  config.initialisation = "ladder";
  expand_shorthand(config);
  complete(config);
  config.layers.front().output_projection = false;
  return config;
}

/// Expects `good` to be accepted, and to be refused after `change`.
inline void expect_refused(const Json& good, const std::function<void(Json&)>& change, const std::string& words) {
  EXPECT_NO_THROW(config_from_json(good, "test"));
  auto json = good;
  change(json);
  EXPECT_REFUSED(config_from_json(json, "test"), words);
}

}  // namespace prism
