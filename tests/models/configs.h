// Small models for tests.
#pragma once

#include <cstdint>
#include <string>

#include "prism/models/model_config.h"

namespace prism {

inline ModelConfig config_of(const std::string& schedule, int64_t d_model = 48, int64_t vocab_size = 50,
                             int64_t ffn_width = 64) {
  ModelConfig config;
  config.vocab_size = vocab_size;
  config.d_model = d_model;
  config.context = 32;
  config.schedule = schedule;
  config.ffn_width = ffn_width;
  config.allow_any = true;
  expand_shorthand(config);
  complete(config);
  return config;
}

inline ModelConfig rung(const std::string& schedule, int64_t head_dim, const std::string& norm, int64_t d_model = 256,
                        int64_t ffn_width = 2048, int64_t vocab_size = 2048) {
  ModelConfig config;
  config.vocab_size = vocab_size;
  config.d_model = d_model;
  config.context = 32;
  config.tied = config.final_norm = false;
  config.learned_positions = true;
  config.initialisation = "ladder";
  config.schedule = schedule;
  config.ffn_width = ffn_width;
  config.each.head_dim = head_dim;
  config.each.rotary.kind = "none";
  config.each.ffn = {.kind = "relu", .width = 0, .depth = 2, .bias = true};
  config.each.norm = norm;
  config.norm_eps = 1e-6;
  expand_shorthand(config);
  complete(config);
  return config;
}

inline ModelConfig grouped(const std::string& schedule, const std::string& kv_schedule) {
  ModelConfig config;
  config.vocab_size = 50;
  config.d_model = 96;
  config.context = 32;
  config.schedule = schedule;
  config.kv_schedule = kv_schedule;
  config.ffn_width = 64;
  expand_shorthand(config);
  complete(config);
  return config;
}

}  // namespace prism
