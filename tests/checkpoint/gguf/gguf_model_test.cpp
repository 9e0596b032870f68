// Models in GGUF files, written here with llama.cpp's names and order of rows, give the logits of the model itself.
#include "prism/checkpoint/gguf/gguf_model.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "prism/checkpoint/config_json.h"
#include "prism/checkpoint/model_folder.h"
#include "prism/core/fields.h"
#include "prism/formats/gguf_writer.h"
#include "tests/checkpoint/models.h"
#include "tests/core/message_of.h"
#include "tests/core/temporary_folder.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

const fs::path kFamilies = fs::path(PRISM_SOURCE_DIR) / "tests/checkpoint/families";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  if (const size_t at = text.find(from); at != std::string::npos) text.replace(at, from.size(), to);
  return text;
}

std::string gguf_name(std::string name) {
  if (name == "model.embed_tokens.weight") return "token_embd.weight";
  if (name == "model.norm.weight") return "output_norm.weight";
  if (name == "lm_head.weight") return "output.weight";
  const std::pair<const char*, const char*> parts[] = {{"model.layers.", "blk."},
                                                       {"input_layernorm", "attn_norm"},
                                                       {"post_attention_layernorm", "ffn_norm"},
                                                       {"self_attn.q_proj", "attn_q"},
                                                       {"self_attn.k_proj", "attn_k"},
                                                       {"self_attn.v_proj", "attn_v"},
                                                       {"self_attn.o_proj", "attn_output"},
                                                       {"self_attn.q_norm", "attn_q_norm"},
                                                       {"self_attn.k_norm", "attn_k_norm"},
                                                       {"mlp.gate_proj", "ffn_gate"},
                                                       {"mlp.up_proj", "ffn_up"},
                                                       {"mlp.down_proj", "ffn_down"}};
  for (const auto& [ours, theirs] : parts) name = replaced(name, ours, theirs);
  return name;
}

/// What a test changes before it writes the file.
struct Made {
  std::map<std::string, GgufValue> keys;
  std::map<std::string, torch::Tensor> tensors;
};

Made made_from(const Decoder& model, const std::string& architecture, bool pairs_neighbours) {
  const auto& config = model->config();
  const auto& layer = config.layers.front();
  Made made;
  const auto key = [&](const std::string& name) -> GgufValue& { return made.keys[architecture + "." + name]; };
  made.keys["general.architecture"] = architecture;
  key("block_count") = static_cast<uint32_t>(config.layers.size());
  key("context_length") = static_cast<uint32_t>(config.context);
  key("embedding_length") = static_cast<uint32_t>(config.d_model);
  key("feed_forward_length") = static_cast<uint32_t>(layer.ffn.width);
  key("attention.head_count") = static_cast<uint32_t>(layer.heads);
  key("attention.head_count_kv") = static_cast<uint32_t>(layer.kv_heads);
  key("attention.key_length") = static_cast<uint32_t>(layer.head_dim);
  key("attention.layer_norm_rms_epsilon") = static_cast<float>(config.norm_eps);
  key("rope.freq_base") = static_cast<float>(layer.rotary.base);
  for (const auto& entry : model->weights())
    for (const auto& tensor : entry.tensors) {
      auto values = tensor.of(entry.weight.tensor()).detach().to(torch::kFloat).contiguous();
      const bool is_q = tensor.name.find("q_proj") != std::string::npos;
      const bool is_k = tensor.name.find("k_proj") != std::string::npos;
      if (pairs_neighbours && (is_q || is_k)) {
        // Row 2j + s of the file is row s D/2 + j here.
        const int64_t heads = is_q ? layer.heads : layer.kv_heads;
        values = values.view({heads, 2, layer.head_dim / 2, -1}).transpose(1, 2).reshape(values.sizes()).contiguous();
      }
      made.tensors[gguf_name(tensor.name)] = values;
    }
  return made;
}

fs::path written(const Made& made, const fs::path& path) {
  GgufPairs pairs(made.keys.begin(), made.keys.end());
  std::vector<GgufTensor> tensors;
  for (const auto& [name, values] : made.tensors)
    tensors.push_back({.name = name, .type = BlockType::f32, .shape = values.sizes().vec(), .data = {}});
  GgufWriter writer(path, pairs, tensors);
  for (const auto& [name, values] : made.tensors)
    writer.write({static_cast<const std::byte*>(values.const_data_ptr()), values.nbytes()});
  writer.commit();
  return path;
}

torch::Tensor logits_of(const Decoder& model) {
  const torch::NoGradGuard no_gradients;
  const auto tokens = (torch::arange(40, torch::kLong) * 7 % 200).view({1, 40});
  return model->head.logits(model(tokens, {}));
}

class GgufModel : public testing::Test {
 protected:
  Decoder fixture(const char* name) const { return load_model(kFamilies / name, torch::kFloat).decoder; }
  fs::path path() const { return temporary_.path() / "model.gguf"; }
  std::string refusal(const Made& made) const {
    written(made, path());
    return message_of([&] { load_model(path(), torch::kFloat); });
  }
  const TemporaryFolder temporary_;
};

TEST_F(GgufModel, GivesTheLogitsOfTheFolder) {
  const std::tuple<const char*, const char*, bool> cases[] = {{"llama", "llama", true},
                                                              {"llama-with-biases", "llama", true},
                                                              {"qwen2", "qwen2", false},
                                                              {"mistral-without-window", "llama", true},
                                                              {"version-4", "llama", true}};
  for (const auto& [name, architecture, neighbours] : cases) {
    const auto model = fixture(name);
    written(made_from(model, architecture, neighbours), path());
    const auto loaded = load_model(path(), torch::kFloat);
    EXPECT_TRUE(torch::equal(logits_of(loaded.decoder), logits_of(model))) << name;
    auto config = load_config(path());
    config.allow_any = model->config().allow_any;
    config.init_std = model->config().init_std;  // a GGUF file does not have it
    config.norm_eps = model->config().norm_eps;  // the file has it in float32
    EXPECT_TRUE(equal_fields(config, model->config())) << name;
  }
}

TEST_F(GgufModel, TurnsPairsByTheFactorsOfTheFile) {
  const auto model = fixture("llama");
  auto made = made_from(model, "llama", true);
  made.tensors["rope_freqs.weight"] = torch::tensor({1.0, 2.0, 4.0, 8.0});
  written(made, path());
  const auto config = load_config(path());
  EXPECT_EQ(config.layers[1].rotary.factors, (std::vector<double>{1, 2, 4, 8}));
  EXPECT_FALSE(torch::equal(logits_of(load_model(path(), torch::kFloat).decoder), logits_of(model)));
}

TEST_F(GgufModel, ReadsScalings) {
  auto made = made_from(fixture("llama"), "llama", true);
  made.keys["llama.rope.scaling.type"] = "yarn";
  made.keys["llama.rope.scaling.factor"] = 4.0f;
  made.keys["llama.rope.scaling.original_context_length"] = uint32_t{32};
  written(made, path());
  const auto rotary = load_config(path()).layers[0].rotary;
  EXPECT_EQ(rotary.scaling, "yarn");
  EXPECT_EQ(rotary.factor, 4);
  EXPECT_EQ(rotary.original_context, 32);
  made.keys.erase("llama.rope.scaling.original_context_length");
  written(made, path());
  const auto config = load_config(path());
  EXPECT_EQ(config.layers[0].rotary.original_context, config.context);
  made.keys["llama.rope.scaling.type"] = "linear";
  written(made, path());
  EXPECT_EQ(load_config(path()).layers[0].rotary.scaling, "linear");
  made.keys["llama.rope.scaling.type"] = "longrope";
  EXPECT_CONTAINS(refusal(made), "expected rope.scaling.type none, linear or yarn; found \"longrope\"");
}

TEST_F(GgufModel, TakesYarnAsTheModelsOwnConfigHasIt) {
  auto made = made_from(fixture("llama"), "llama", true);
  const auto key = [&](const char* name) -> GgufValue& { return made.keys[std::string("llama.rope.scaling.") + name]; };
  key("type") = "yarn";
  key("factor") = 4.0f;
  key("original_context_length") = uint32_t{32};
  key("yarn_ext_factor") = 1.0f;
  key("yarn_beta_fast") = 16.0f;
  key("yarn_beta_slow") = 2.0f;
  const auto read = [&] {
    written(made, path());
    return load_config(path()).layers[0].rotary;
  };
  EXPECT_EQ(read().beta_fast, 16);
  EXPECT_EQ(read().beta_slow, 2);
  EXPECT_EQ(read().attention_factor, 0) << "by the formula";
  const double by_formula = rotary_attention_factor(read());
  key("attn_factor") = 0.5f;
  EXPECT_EQ(read().attention_factor, 0.5 * by_formula);
  key("yarn_attn_factor") = 1.5f;
  EXPECT_EQ(read().attention_factor, 0.75);
  made.keys.erase("llama.rope.scaling.attn_factor");
  EXPECT_EQ(read().attention_factor, 1.5);
  key("yarn_ext_factor") = 0.5f;
  EXPECT_CONTAINS(refusal(made), "expected rope.scaling.yarn_ext_factor = 1; found 0.5");
}

TEST_F(GgufModel, TurnsWithABaseOf10000IfTheFileHasNone) {
  auto made = made_from(fixture("smollm3"), "smollm3", true);
  made.keys.erase("smollm3.rope.freq_base");
  written(made, path());
  EXPECT_EQ(load_config(path()).layers[0].rotary.base, 10000);
}

TEST_F(GgufModel, AttendsToAllKeysAsLlamaCppDoes) {
  auto made = made_from(fixture("llama"), "llama", true);
  made.keys["llama.attention.sliding_window"] = uint32_t{8};
  written(made, path());
  EXPECT_EQ(load_config(path()).layers[0].window, 0);
}

TEST_F(GgufModel, ScalesLinearlyUnlessTheTypeIsNone) {
  auto made = made_from(fixture("llama"), "llama", true);
  const auto read = [&] {
    written(made, path());
    const auto rotary = load_config(path()).layers[0].rotary;
    return std::pair(rotary.scaling, rotary.factor);
  };
  made.keys["llama.rope.scaling.factor"] = 0.0f;
  EXPECT_EQ(read(), std::pair(std::string("none"), 1.0));
  made.keys["llama.rope.scaling.factor"] = 4.0f;
  EXPECT_EQ(read(), std::pair(std::string("linear"), 4.0));
  made.keys["llama.rope.scaling.type"] = "none";
  EXPECT_EQ(read(), std::pair(std::string("none"), 1.0));
}

TEST_F(GgufModel, IsRefusedWithASentence) {
  const auto good = made_from(fixture("llama"), "llama", true);
  EXPECT_EQ(refusal(good), "");
  const auto refused = [&](auto change) {
    auto made = good;
    change(made);
    return refusal(made);
  };
  EXPECT_CONTAINS(refused([](Made& m) { m.keys["general.architecture"] = "gemma"; }),
                  "expected general.architecture llama, qwen2, qwen3 and smollm3; found \"gemma\"");
  EXPECT_CONTAINS(refused([](Made& m) { m.keys.erase("llama.block_count"); }), "llama.block_count");
  EXPECT_CONTAINS(refused([](Made& m) { m.keys["llama.block_count"] = uint32_t{0}; }), "block_count within 1-4096");
  EXPECT_CONTAINS(refused([](Made& m) { m.keys["llama.expert_count"] = uint32_t{8}; }), "without experts; found 8");
  EXPECT_CONTAINS(refused([](Made& m) { m.keys["llama.rope.dimension_count"] = uint32_t{4}; }),
                  "expected rope.dimension_count = 8, the width of a head; found 4");
  EXPECT_CONTAINS(refused([](Made& m) { m.tensors.erase("blk.1.ffn_up.weight"); }),
                  "expected a tensor for model.layers.1.mlp.up_proj.weight; found none");
  EXPECT_CONTAINS(refused([](Made& m) { m.tensors["blk.1.ffn_gate_inp.weight"] = torch::ones({2}); }),
                  "expected tensors of a llama; found \"blk.1.ffn_gate_inp.weight\"");
  EXPECT_CONTAINS(refused([](Made& m) {
                    m.tensors["blk.1.ffn_up.weight"] = torch::ones({2, 16});
                  }),
                  "expected the shape [20, 16]");
  EXPECT_CONTAINS(refused([](Made& m) { m.keys["llama.attention.head_count"] = GgufArray(std::vector<int32_t>{4}); }),
                  "model.gguf: expected llama.attention.head_count to have a number for each of the 3 layers; found 1");
  EXPECT_CONTAINS(refused([](Made& m) {
                    m.tensors["rope_freqs.weight"] = torch::ones({1, 4});
                  }),
                  "model.gguf: expected rope_freqs.weight to have one dimension; found 2");
  EXPECT_CONTAINS(refused([](Made& m) { m.tensors["blk.01.attn_norm.weight"] = torch::ones({16}); }),
                  "expected one name for each tensor; found \"blk.1.attn_norm.weight\", which another name");
}

}  // namespace
}  // namespace prism
