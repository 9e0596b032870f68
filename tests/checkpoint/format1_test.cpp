// config.json in format 1, as older versions of prism wrote it.
#include <gtest/gtest.h>

#include "prism/checkpoint/config_json.h"
#include "tests/checkpoint/models.h"

namespace prism {
namespace {

constexpr const char* kFormat1Heads = R"({
  "architectures": ["PrismForCausalLM"], "model_type": "prism", "prism_format": 1, "vocab_size": 20,
  "hidden_size": 16, "num_hidden_layers": 2, "max_position_embeddings": 8, "tie_word_embeddings": true,
  "hidden_act": "silu", "attention_bias": false, "mlp_bias": false, "rms_norm_eps": 1e-05,
  "initializer_range": 0.02, "base_heads": 0, "allow_any": true, "dtype": "float32", "torch_dtype": "float32",
  "use_cache": true, "eos_token_id": 0, "bos_token_id": 0, "tokenizer_fingerprint": "c8ceb478d2d07227",
  "per_layer_config": {
    "0": {"num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 8, "intermediate_size": 12,
          "rope_theta": 10000.0, "rope_scaling": null},
    "1": {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 4, "intermediate_size": 12,
          "rope_theta": 10000.0, "rope_scaling": null}}})";
constexpr const char* kFormat1Rung = R"({
  "architectures": ["PrismForCausalLM"], "model_type": "prism", "prism_format": 1, "vocab_size": 30,
  "hidden_size": 16, "num_hidden_layers": 2, "max_position_embeddings": 8, "tie_word_embeddings": false,
  "attention_bias": false, "rms_norm_eps": 1e-05, "initializer_range": 0.02, "base_heads": 0, "allow_any": false,
  "dtype": "float32", "torch_dtype": "float32", "use_cache": true, "eos_token_id": null, "bos_token_id": null,
  "per_layer_config": {
    "0": {"num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 8, "intermediate_size": 12,
          "rope_theta": 10000.0, "rope_scaling": null, "rotary_kind": "none", "hidden_act": "relu",
          "mlp_bias": true, "mlp_depth": 2, "norm": "none", "output_projection": false},
    "1": {"num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 8, "intermediate_size": 12,
          "rope_theta": 10000.0, "rope_scaling": null, "rotary_kind": "none", "hidden_act": "relu",
          "mlp_bias": true, "mlp_depth": 2, "norm": "none"}},
  "learned_positions": true, "final_norm": false, "initialisation": "ladder"})";
constexpr const char* kFormat1QkNorm = R"({
  "architectures": ["PrismForCausalLM"], "model_type": "prism", "prism_format": 1, "vocab_size": 20,
  "hidden_size": 16, "num_hidden_layers": 2, "max_position_embeddings": 8, "tie_word_embeddings": true,
  "hidden_act": "silu", "attention_bias": false, "mlp_bias": false, "rms_norm_eps": 1e-05,
  "initializer_range": 0.02, "base_heads": 0, "allow_any": true, "dtype": "float32", "torch_dtype": "float32",
  "use_cache": true, "eos_token_id": null, "bos_token_id": null,
  "per_layer_config": {
    "0": {"num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 4, "intermediate_size": 12,
          "rope_theta": 1000000.0, "rope_scaling": {"rope_type": "yarn", "factor": 4.0,
          "original_max_position_embeddings": 32, "beta_fast": 16.0, "beta_slow": 1.0,
          "attention_factor": 1.138629436111989}, "qk_norm": true},
    "1": {"num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 4, "intermediate_size": 12,
          "rope_theta": 1000000.0, "rope_scaling": {"rope_type": "yarn", "factor": 4.0,
          "original_max_position_embeddings": 32, "beta_fast": 16.0, "beta_slow": 1.0,
          "attention_factor": 1.138629436111989}}}})";

TEST(Format1, IsRead) {
  const auto expect_read = [](const char* text, const ModelConfig& expected) {
    const auto read = config_from_json(parse_json(text, "test"), "test");
    EXPECT_TRUE(equal_fields(read, expected)) << fields_to_json(read);
  };
  auto heads = config_of("2x1,4x1");
  heads.layers.back().kv_heads = 2;
  expect_read(kFormat1Heads, heads);
  EXPECT_REFUSED(check_tokenizer(parse_json(kFormat1Heads, "test"), tokenizer_of("other words, other words"), "test"),
                 "another model");
  expect_read(kFormat1Rung, rung());
  auto normed = config_of("4x2");
  normed.layers.front().qk_norm = true;
  for (auto& layer : normed.layers)
    layer.rotary = {.base = 1e6, .scaling = "yarn", .factor = 4, .original_context = 32, .beta_fast = 16};
  expect_read(kFormat1QkNorm, normed);
}

TEST(Format1, IsRefusedIfTheModelCannotRun) {
  const auto refused = [good = parse_json(kFormat1Heads, "test")](auto change, const std::string& words) {
    expect_refused(good, change, words);
  };
  refused([](Json& j) { j["hidden_act"] = "gelu"; }, "expected hidden_act = silu; found gelu");
  refused([](Json& j) { j["attention_bias"] = true; }, "expected attention_bias = false");
  refused([](Json& j) { j.erase("hidden_size"); }, "expected \"hidden_size\"");
  refused([](Json& j) { j["hidden_size"] = "16"; }, "hidden_size: expected a whole number");
  refused([](Json& j) { j["num_hidden_layers"] = 3; }, "expected per_layer_config with 3 layers; found 2");
  refused([](Json& j) { j["num_hidden_layers"] = 1000000000000; }, "num_hidden_layers within 1-4096");
  refused([](Json& j) { j["per_layer_config"].erase("1"); }, "expected per_layer_config with 2 layers; found 1");
  refused([](Json& j) { j.erase("per_layer_config"); }, "expected per_layer_config with 2 layers; found 0");
  refused(
      [](Json& j) {
        j["per_layer_config"]["2"] = j["per_layer_config"]["1"];
        j["per_layer_config"].erase("1");
      },
      "expected layer 1 in per_layer_config");
  refused([](Json& j) { j["per_layer_config"]["0"]["num_attention_heads"] = 0; }, "at least 1 head");
  refused([](Json& j) { j["per_layer_config"]["1"]["num_key_value_heads"] = 3; }, "kv_heads that divide");
  refused([](Json& j) { j["per_layer_config"]["1"]["hidden_act"] = "gelu"; }, "hidden_act silu or relu");
  refused(
      [](Json& j) {
        j["per_layer_config"]["1"]["rope_scaling"] = {{"rope_type", "dynamic"}, {"factor", 2.0}};
      },
      "found \"dynamic\"");
}

}  // namespace
}  // namespace prism
