#include "prism/checkpoint/model_folder.h"

#include <gtest/gtest.h>

#include "prism/checkpoint/config_json.h"
#include "prism/checkpoint/run_state.h"
#include "prism/checkpoint/weight_map.h"
#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "prism/core/files.h"
#include "tests/checkpoint/models.h"
#include "tests/core/message_of.h"
#include "tests/core/temporary_folder.h"
#include "tests/layers/weights.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

class ModelFolderTest : public testing::Test {
 protected:
  const TemporaryFolder temporary_;
  const fs::path folder_ = temporary_.path();
};

Decoder make_decoder(const ModelConfig& config) {
  Decoder decoder(config);
  decoder->initialise(4);
  return decoder;
}

void expect_equal_weights(const Decoder& a, const Decoder& b) {
  const auto before = a->weights(), after = b->weights();
  ASSERT_EQ(before.size(), after.size());
  for (const auto& entry : before)
    EXPECT_TRUE(torch::equal(entry.weight.tensor(), find_weight(after, entry.name).tensor())) << entry.name;
}

TEST_F(ModelFolderTest, SurvivesSavingAndLoadingBitForBit) {
  for (const bool tied : {true, false}) {
    auto config = config_of("1x1,2x1,4x1", tied);
    config.layers.back().kv_heads = 2;
    auto decoder = make_decoder(config);
    save_model(folder_, *decoder, nullptr);
    auto model = load_model(folder_, torch::kFloat);
    EXPECT_TRUE(equal_fields(model.decoder->config(), config));
    expect_equal_weights(decoder, model.decoder);
    EXPECT_FALSE(model.tokenizer.has_value());
  }
}

TEST_F(ModelFolderTest, IsAValidLlamaWhereTheLayersAreEqual) {
  const auto tokenizer = tokenizer_of("some text");
  const auto json = config_to_json(config_of("4x2"), &tokenizer);
  EXPECT_EQ(json["model_type"], "llama");
  EXPECT_EQ(json["num_attention_heads"], 4);
  EXPECT_EQ(json["head_dim"], 4);
  EXPECT_EQ(json["intermediate_size"], 12);
  EXPECT_EQ(json["eos_token_id"], 0);
  check_tokenizer(json, tokenizer, "test");
  EXPECT_REFUSED(check_tokenizer(json, tokenizer_of("other words, other words"), "test"), "another model");
  check_tokenizer(config_to_json(config_of("4x2"), nullptr), tokenizer, "a folder that names none");
  EXPECT_EQ(json["rope_parameters"]["rope_theta"], 10000.0);
  std::vector<std::string> names;
  for (const auto& [name, tensor] : file_tensors(make_decoder(config_of("4x1"))->weights())) names.push_back(name);
  EXPECT_EQ(names,
            (std::vector<std::string>{
                "model.embed_tokens.weight", "model.layers.0.input_layernorm.weight",
                "model.layers.0.self_attn.q_proj.weight", "model.layers.0.self_attn.k_proj.weight",
                "model.layers.0.self_attn.v_proj.weight", "model.layers.0.self_attn.o_proj.weight",
                "model.layers.0.post_attention_layernorm.weight", "model.layers.0.mlp.gate_proj.weight",
                "model.layers.0.mlp.up_proj.weight", "model.layers.0.mlp.down_proj.weight", "model.norm.weight"}));
}

TEST_F(ModelFolderTest, IsAQwen3WithNormsOfQueriesAndKeys) {
  for (const char* schedule : {"4x2", "2x1,4x1"}) {
    auto config = config_of(schedule);
    for (auto& layer : config.layers) layer.qk_norm = true;
    auto decoder = make_decoder(config);
    torch::NoGradGuard no_gradients;
    decoder->blocks[0]->attention.k_norm.weight.tensor().fill_(3);
    const auto path = folder_ / schedule;
    make_folder(path);
    save_model(path, *decoder, nullptr);
    const auto model = load_model(path, torch::kFloat);
    EXPECT_TRUE(equal_fields(model.decoder->config(), config)) << schedule;
    EXPECT_EQ(model.decoder->blocks[0]->attention.k_norm.weight.tensor()[0].item<float>(), 3);
    const auto json = config_to_json(config, nullptr);
    EXPECT_EQ(json["model_type"], config.layers[0].heads == 4 ? "qwen3" : "prism");
  }
  auto json = config_to_json(config_of("4x2"), nullptr);
  json["model_type"] = "qwen3";
  EXPECT_TRUE(config_from_json(json, "test").layers[0].qk_norm);
}

TEST_F(ModelFolderTest, KeepsAClassifier) {
  auto config = config_of("4x2");
  config.classes = 3;
  config.attention = "full";
  config.sinusoidal_positions = true;
  for (auto& layer : config.layers) {
    layer.norm = "layer";
    layer.norm_place = "post";
    layer.qkv_bias = true;
  }
  complete(config);
  Classifier classifier(config);
  classifier->initialise(1);
  for (const auto& entry : classifier->weights()) entry.weight.tensor().detach().add_(0.01);
  save_model(folder_, *classifier, nullptr);
  const auto loaded = load_classifier(folder_, torch::kFloat);
  EXPECT_TRUE(equal_fields(loaded.classifier->config(), config));
  const auto before = classifier->weights(), after = loaded.classifier->weights();
  ASSERT_EQ(before.size(), after.size());
  for (const auto& entry : before)
    EXPECT_TRUE(torch::equal(entry.weight.tensor(), find_weight(after, entry.name).tensor())) << entry.name;
  const auto json = read_json((folder_ / "config.json").string());
  EXPECT_EQ(json["model_type"], "prism");
  EXPECT_EQ(json["architectures"][0], "PrismForSequenceClassification");
  EXPECT_REFUSED(load_model(folder_, torch::kFloat), "expected a language model");
  save_model(folder_, *make_decoder(config_of("4x2")), nullptr);
  EXPECT_REFUSED(load_classifier(folder_, torch::kFloat), "expected a classifier");
}

TEST_F(ModelFolderTest, KeepsWhatLlamaHasNoNameFor) {
  const auto config = rung();
  auto decoder = make_decoder(config);
  const auto path = folder_ / "rung";
  make_folder(path);
  save_model(path, *decoder, nullptr);
  const auto model = load_model(path, torch::kFloat);
  EXPECT_TRUE(equal_fields(model.decoder->config(), config));
  expect_equal_weights(decoder, model.decoder);
  const auto json = config_to_json(config, nullptr);
  EXPECT_EQ(json["model_type"], "prism");
  // A model with any part that Llama lacks is not written as a Llama.
  for (const auto change :
       {+[](ModelConfig& c) { c.learned_positions = true; }, +[](ModelConfig& c) { c.final_norm = false; },
        +[](ModelConfig& c) {
          for (auto& layer : c.layers) layer.norm = "none";
        },
        +[](ModelConfig& c) {
          for (auto& layer : c.layers) layer.ffn.kind = "relu";
        },
        +[](ModelConfig& c) {
          for (auto& layer : c.layers) layer.output_projection = false;
        }}) {
    auto other = config_of("4x2");
    change(other);
    const auto written = config_to_json(other, nullptr);
    EXPECT_EQ(written["model_type"], "prism");
    EXPECT_TRUE(equal_fields(config_from_json(written, "test"), other));
  }
}

TEST_F(ModelFolderTest, NamesNoHeadCountThatIsTrueOfOneLayerOnly) {
  const auto json = config_to_json(config_of("1x1,2x1"), nullptr);
  EXPECT_EQ(json["model_type"], "prism");
  for (const char* name : {"num_attention_heads", "heads", "head_dim"}) {
    EXPECT_FALSE(json.contains(name)) << name;
    EXPECT_FALSE(json["model"].contains(name)) << name;
  }
  EXPECT_EQ(json["model"]["layers"][0]["heads"], 1);
  EXPECT_EQ(json["model"]["layers"][1]["head_dim"], 8);
  EXPECT_TRUE(json["eos_token_id"].is_null());
}

TEST_F(ModelFolderTest, ReadsBothSpellingsOfTheRotaryBase) {
  auto json = config_to_json(config_of("4x2"), nullptr);
  json.erase("rope_theta");
  json["rope_parameters"]["rope_theta"] = 5e5;
  EXPECT_EQ(config_from_json(json, "test").layers.back().rotary.base, 5e5);
  json.erase("rope_parameters");
  json["rope_theta"] = 1e6;
  json["rope_scaling"] = {{"type", "linear"}, {"factor", 2.0}};
  EXPECT_EQ(config_from_json(json, "test").layers.back().rotary.base, 1e6);
  EXPECT_EQ(config_from_json(json, "test").layers.back().rotary.factor, 2.0);
}

TEST_F(ModelFolderTest, KeepsYarn) {
  for (const std::string schedule : {"4x2", "2x1,4x1"}) {
    auto config = config_of(schedule);
    const RotaryConfig yarn{.base = 1e6, .scaling = "yarn", .factor = 4, .original_context = 32, .beta_fast = 16};
    for (auto& layer : config.layers) layer.rotary = yarn;
    const auto read = config_from_json(config_to_json(config, nullptr), "test").layers.front().rotary;
    EXPECT_EQ(read.original_context, 32);
    EXPECT_EQ(read.beta_fast, 16);
    EXPECT_TRUE(torch::equal(rotary_angles(read, 64), rotary_angles(yarn, 64)));
    EXPECT_EQ(rotary_attention_factor(read), rotary_attention_factor(yarn));
  }
}

TEST_F(ModelFolderTest, ReadsAScalingThatWasAddedByHand) {
  auto json = config_to_json(config_of("4x2"), nullptr);
  ASSERT_EQ(json["rope_parameters"]["rope_type"], "default");
  json["rope_scaling"] = {{"rope_type", "yarn"}, {"original_max_position_embeddings", json["max_position_embeddings"]}};
  json["max_position_embeddings"] = 4 * json["max_position_embeddings"].get<int64_t>();
  json["rope_theta"] = json["rope_parameters"]["rope_theta"] = 5e5;
  const auto rotary = config_from_json(json, "test").layers.back().rotary;
  EXPECT_EQ(rotary.scaling, "yarn");
  EXPECT_EQ(rotary.factor, 4);
  EXPECT_EQ(rotary.base, 5e5);
  json["rope_parameters"]["rope_theta"] = 7e5;
  EXPECT_EQ(config_from_json(json, "test").layers.back().rotary.base, 5e5) << "beside the scaling";
  json.erase("rope_theta");
  EXPECT_EQ(config_from_json(json, "test").layers.back().rotary.base, 10000) << "the default";
  json["original_max_position_embeddings"] = 16;
  EXPECT_EQ(config_from_json(json, "test").layers.back().rotary.original_context, 16);
  json["partial_rotary_factor"] = 0.5;
  EXPECT_THROW(config_from_json(json, "test"), InputError);
}

TEST_F(ModelFolderTest, TakesTheAttentionFactorOfYarnAsTransformersDoes) {
  auto json = config_to_json(config_of("4x2"), nullptr);
  json["rope_scaling"] = {{"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 32}};
  const auto factor = [&] { return rotary_attention_factor(config_from_json(json, "test").layers.back().rotary); };
  const double growth = 0.1 * std::log(4.0);
  EXPECT_EQ(factor(), growth + 1);
  json["rope_scaling"]["mscale"] = 0.5;
  EXPECT_EQ(factor(), growth + 1) << "one of the two numbers";
  json["rope_scaling"]["mscale_all_dim"] = 2.0;
  EXPECT_NEAR(factor(), (0.5 * growth + 1) / (2 * growth + 1), 1e-15);
  json["rope_scaling"]["mscale"] = 2.0;
  EXPECT_EQ(factor(), 1);
  json["rope_scaling"]["attention_factor"] = 1.25;
  EXPECT_EQ(factor(), 1.25);
}

TEST_F(ModelFolderTest, WritesALlamaAndAQwen3AsTransformersDoes) {
  auto config = config_of("4x2", false);
  config.initialisation = "ladder";
  for (auto& layer : config.layers) {
    layer.kv_heads = 2;
    layer.head_dim = 8;
    layer.rotary = {.base = 1e6, .scaling = "yarn", .factor = 4, .original_context = 32, .beta_fast = 16};
  }
  EXPECT_EQ(to_text(config_to_json(config, nullptr)),
            R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","prism_format":1,"vocab_size":20,)"
            R"("hidden_size":16,"num_hidden_layers":2,"max_position_embeddings":8,"tie_word_embeddings":false,)"
            R"("hidden_act":"silu","rms_norm_eps":1e-05,"initializer_range":0.02,"base_heads":0,"allow_any":true,)"
            R"("use_cache":true,"pad_token_id":null,"num_attention_heads":4,)"
            R"("num_key_value_heads":2,"head_dim":8,"intermediate_size":12,"rope_theta":1000000.0,)"
            R"("rope_scaling":{"rope_type":"yarn","factor":4.0,"original_max_position_embeddings":32,)"
            R"("beta_fast":16.0,"beta_slow":1.0,"attention_factor":1.138629436111989},)"
            R"("rope_parameters":{"rope_type":"yarn","factor":4.0,"original_max_position_embeddings":32,)"
            R"("beta_fast":16.0,"beta_slow":1.0,"attention_factor":1.138629436111989,"rope_theta":1000000.0},)"
            R"("attention_bias":false,"mlp_bias":false,"initialisation":"ladder","dtype":"float32",)"
            R"("torch_dtype":"float32","eos_token_id":null,"bos_token_id":null})");
  config = config_of("4x2");
  for (auto& layer : config.layers) layer.qk_norm = true;
  EXPECT_EQ(to_text(config_to_json(config, nullptr)),
            R"({"architectures":["Qwen3ForCausalLM"],"model_type":"qwen3","prism_format":1,"vocab_size":20,)"
            R"("hidden_size":16,"num_hidden_layers":2,"max_position_embeddings":8,"tie_word_embeddings":true,)"
            R"("hidden_act":"silu","rms_norm_eps":1e-05,"initializer_range":0.02,"base_heads":0,"allow_any":true,)"
            R"("use_cache":true,"pad_token_id":null,"num_attention_heads":4,)"
            R"("num_key_value_heads":4,"head_dim":4,"intermediate_size":12,"rope_theta":10000.0,)"
            R"("rope_scaling":null,"rope_parameters":{"rope_type":"default","rope_theta":10000.0},)"
            R"("attention_bias":false,"use_sliding_window":false,"sliding_window":null,"max_window_layers":2,)"
            R"("layer_types":["full_attention","full_attention"],"dtype":"float32","torch_dtype":"float32",)"
            R"("eos_token_id":null,"bos_token_id":null})");
}

TEST_F(ModelFolderTest, ReadsShorthandThatWasWrittenByHand) {
  auto json = config_to_json(config_of("1x1,2x1"), nullptr);
  json["model"].erase("layers");
  json["model"].update({{"schedule", "1x1,2x1"}, {"ffn_width", 12}});
  EXPECT_TRUE(equal_fields(config_from_json(json, "test"), config_of("1x1,2x1")));
}

TEST_F(ModelFolderTest, RefusesALlamaThatItCannotRun) {
  const auto refused = [good = config_to_json(config_of("4x2"), nullptr)](auto change, const std::string& words) {
    expect_refused(good, change, words);
  };
  refused([](Json& j) { j["model_type"] = "gpt2"; },
          "expected model_type llama, mistral, qwen2, qwen3, smollm3 or prism; found \"gpt2\"");
  refused([](Json& j) { j["hidden_act"] = "gelu"; }, "expected hidden_act = silu; found gelu");
  refused([](Json& j) { j["rope_interleaved"] = true; }, "expected rope_interleaved = false");
  refused([](Json& j) { j["prism_format"] = 2; }, "expected prism_format = 1; found 2");
  refused([](Json& j) { j.erase("hidden_size"); }, "expected \"hidden_size\"");
  refused([](Json& j) { j["hidden_size"] = "16"; }, "hidden_size: expected a whole number");
  refused([](Json& j) { j["num_attention_heads"] = 0; }, "at least 1 head");
  refused([](Json& j) { j["num_hidden_layers"] = 1000000000000; }, "num_hidden_layers within 1-4096");
  refused([](Json& j) { j["rope_scaling"] = {{"rope_type", "dynamic"}, {"factor", 2.0}}; }, "found \"dynamic\"");
  refused([](Json& j) { j["rope_theta"] = 5e5; },
          "expected one rope_theta; found 500000 and, in rope_parameters, 10000");
  refused([](Json& j) { j["rms_norm_eps"] = 1e-320; }, "norm_eps: expected a number from 1e-20 to 1");
  refused([](Json& j) { j["eos_token_id"] = 1000000; }, "eos_token_id: expected token ids below vocab_size");
  refused([](Json& j) { j["bos_token_id"] = -1; }, "bos_token_id: expected token ids");
  refused([](Json& j) { j["eos_token_id"] = "end"; }, "eos_token_id: expected token ids");
  refused([](Json& j) { j["eos_token_id"] = {1, 1000000}; }, "eos_token_id: expected token ids");
}

TEST_F(ModelFolderTest, TakesSeveralTokensThatEndDocuments) {
  auto json = config_to_json(config_of("4x2"), nullptr);
  json["eos_token_id"] = {1, 2};
  EXPECT_NO_THROW(config_from_json(json, "test"));
}

TEST_F(ModelFolderTest, RefusesWhatItCannotRun) {
  const auto refused = [good = config_to_json(config_of("1x1,2x1"), nullptr)](auto change, const std::string& words) {
    expect_refused(good, change, words);
  };
  refused([](Json& j) { j.erase("prism_format"); }, "expected \"prism_format\" in test; found none; add it");
  refused([](Json& j) { j["prism_format"] = 3; }, "expected prism_format 1 or 2; found 3");
  refused([](Json& j) { j["hidden_size"] = 16; }, "expected a field of test; found \"hidden_size\"");
  refused([](Json& j) { j["tokenizer_fingerprnt"] = "0"; }, "did you mean \"tokenizer_fingerprint\"?");
  refused([](Json& j) { j["model"]["contxt"] = 16; }, "did you mean \"context\"?");
  refused([](Json& j) { j["model"]["layers"][1]["haeds"] = 2; },
          "expected a field of test: model.layers[1]; found \"haeds\"; did you mean \"heads\"?");
  refused([](Json& j) { j["model"]["d_model"] = "16"; }, "test: model.d_model: expected a whole number");
  refused([](Json& j) { j["model"].erase("d_model"); }, "model.d_model: expected a size");
  refused([](Json& j) { j["model"]["context"] = 0; }, "model.context: expected a size");
  for (const double eps : {0.0, 1e-320, -1.0, 1.5, 1e308})
    refused([&](Json& j) { j["model"]["norm_eps"] = eps; }, "norm_eps: expected a number from 1e-20 to 1");
  for (const double base : {0.0, 1e-320, 1e13, 1e308})
    refused([&](Json& j) { j["model"]["layers"][0]["rotary"]["base"] = base; },
            "rotary.base: expected a number from 0.001 to 1000000000000");
  refused([](Json& j) { j["model"].erase("layers"); }, "expected a schedule or a list of layers");
  refused([](Json& j) { j["model"]["schedule"] = "1x1,2x1"; }, "found both");
  refused([](Json& j) { j["model"]["layers"][0]["heads"] = 0; }, "at least 1 head");
  refused([](Json& j) { j["model"]["layers"][1]["kv_heads"] = 3; }, "kv_heads that divide");
  refused([](Json& j) { j["model"]["layers"][1]["rotary"]["scaling"] = "dynamic"; }, "dynamic");
}

TEST_F(ModelFolderTest, RefusesTensorsOfAnotherShapeMissingOrLeftOver) {
  auto small = make_decoder(config_of("2x1")), large = make_decoder(config_of("2x2"));
  save_model(folder_, *small, nullptr);
  EXPECT_THROW(load_weights(large->weights(), folder_), InputError);
  save_model(folder_, *large, nullptr);
  EXPECT_THROW(load_weights(small->weights(), folder_), InputError);
  auto wider = config_of("2x2");
  wider.layers.back().ffn.width = 14;
  try {
    load_weights(make_decoder(wider)->weights(), folder_);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("model.layers.1.mlp.gate_proj.weight: expected the shape [14, 16]"),
              std::string::npos)
        << error.what();
  }
}

TEST_F(ModelFolderTest, RefusesWeightsWhoseHeaderSaysIntegers) {
  const auto decoder = make_decoder(config_of("2x1"));
  std::vector<NamedTensor> tensors = file_tensors(decoder->weights());
  tensors[0].tensor = tensors[0].tensor.to(torch::kInt);
  write_tensors(folder_ / "model.safetensors", tensors);
  EXPECT_REFUSED(load_weights(decoder->weights(), folder_), "expected floating-point values; found Int");
}

TEST_F(ModelFolderTest, IsFoundThroughItsRunAndRefusedWhereThereIsNone) {
  EXPECT_REFUSED(
      find_model_folder(folder_),
      "expected a model folder (with config.json), a .gguf file, llama2.c's .bin, or a run with a checkpoint "
      "at ");
  EXPECT_REFUSED(find_model_folder(folder_), "; found none of them; name another.");
  EXPECT_REFUSED(find_model_folder(folder_ / "nowhere"), "; found nothing; name another.");
  CheckpointStore store(folder_);
  for (const int64_t step : {9, 10})
    store.save(CheckpointKind::step, step, [](const fs::path& path) { write_file(path / "config.json", "{}"); });
  store.save(CheckpointKind::best, 99, [](const fs::path& path) { write_file(path / "config.json", "{}"); });
  EXPECT_EQ(find_model_folder(folder_).filename(), "step-00000010");
}

TEST_F(ModelFolderTest, CheckpointsAppearWholeOrNotAtAllAndAreThinnedOut) {
  CheckpointStore store(folder_);
  const auto write = [](const fs::path& path) { write_file(path / "config.json", "{}"); };
  for (int64_t step = 1; step <= 4; ++step) store.save(CheckpointKind::step, step, write);
  EXPECT_THROW(store.save(CheckpointKind::step, 5,
                          [&](const fs::path& path) {
                            write(path);
                            throw FailedError("write", "the disk is full");
                          }),
               FailedError);
  EXPECT_EQ(store.steps(CheckpointKind::step), (std::vector<int64_t>{1, 2, 3, 4}));
  store.prune(CheckpointKind::step, 2);
  EXPECT_EQ(store.steps(CheckpointKind::step), (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "checkpoints"), {}), 2) << "nothing temporary is left";
}

TEST_F(ModelFolderTest, RunStateOfTheSecondFormatIsRead) {
  RunState state;
  state.step = 7;
  state.records_bytes = 1;
  state.best_metric = 5.25;
  auto json = fields_to_json(state);
  json.erase("best_metric");
  json.update({{"prism_format", 2}, {"best_figure", 5.25}});
  write_file(folder_ / "state.json", json.dump());
  EXPECT_TRUE(equal_fields(load_run_state(folder_), state));
  json["best_figure"] = "low";
  write_file(folder_ / "state.json", json.dump());
  EXPECT_THROW(load_run_state(folder_), InputError);
}

TEST_F(ModelFolderTest, RunStateOfTheFirstFormatIsRead) {
  RunState state;
  state.step = 7;
  state.records_bytes = 1;
  state.best_metric = 5.25;
  auto json = fields_to_json(state);
  json.erase("best_metric");
  json.update({{"prism_format", 1}, {"best_val_loss", 5.25}, {"last_val_loss", -1}});
  write_file(folder_ / "state.json", json.dump());
  EXPECT_TRUE(equal_fields(load_run_state(folder_), state));
  for (const auto& change :
       {Json{{"best_val_loss", "low"}}, Json{{"prism_format", 7}}, Json{{"last_val_loss", Json()}}}) {
    auto wrong = json;
    wrong.update(change);
    write_file(folder_ / "state.json", wrong.dump());
    EXPECT_THROW(load_run_state(folder_), InputError) << change;
  }
}

TEST_F(ModelFolderTest, RunStateSurvivesToTheLastBit) {
  RunState state;
  state.step = 7;
  state.records_bytes = 1;
  state.loss_sum = 1.0 / 3;
  state.best_metric = 5.123456789012345;
  state.recipe_fingerprint = "0123";
  const std::vector<NamedTensor> moments = {{"a.mean", torch::randn({3, 2})}, {"a.square", torch::rand({3, 2})}};
  save_run_state(folder_, state, moments);
  const RunState read = load_run_state(folder_);
  check_tensors(folder_, read);
  state.tensors_fingerprint = read.tensors_fingerprint;
  EXPECT_TRUE(equal_fields(read, state));
  for (const auto& change :
       {Json{{"step", nullptr}}, Json{{"step", -1}}, Json{{"recipe_fingerprint", nullptr}}, Json{{"isa", nullptr}}}) {
    auto json = fields_to_json(state);
    json.update(change);
    if (json["step"].is_null()) json.erase("step");
    write_file(folder_ / "state.json", json.dump());
    EXPECT_THROW(load_run_state(folder_), InputError);
  }
  const std::vector<NamedTensor> targets = {{"a.mean", torch::zeros({3, 2})}, {"a.square", torch::zeros({3, 2})}};
  load_optimizer(folder_, targets);
  EXPECT_TRUE(torch::equal(targets[0].tensor, moments[0].tensor) && torch::equal(targets[1].tensor, moments[1].tensor));
}

}  // namespace
}  // namespace prism
