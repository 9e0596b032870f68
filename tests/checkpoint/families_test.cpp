// Model families of transformers: their configs, and logits of models that transformers saved
// (benchmarks/peers/families.py --fixtures), against prism's.
#include "prism/checkpoint/families/family.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "prism/checkpoint/config_json.h"
#include "prism/checkpoint/model_folder.h"
#include "prism/core/fields.h"
#include "prism/core/files.h"
#include "tests/checkpoint/models.h"
#include "tests/core/message_of.h"
#include "tests/core/temporary_folder.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = fs::path(PRISM_SOURCE_DIR) / "tests/checkpoint/families";

std::vector<fs::path> fixtures() {
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(kFolder)) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  return folders;
}

/// Logits of every fourth token, as the fixtures hold them.
torch::Tensor logits_of(const Decoder& model, const torch::Tensor& tokens, KvCache* cache = nullptr) {
  const torch::NoGradGuard no_gradients;
  ForwardContext context;
  context.cache = cache;
  std::vector<torch::Tensor> parts;
  const int64_t all = tokens.size(1), step = cache == nullptr ? all : 1;
  for (int64_t t = 0; t < all; t += step)
    parts.push_back(model->head.logits(model(tokens.narrow(1, t, step), context)));
  return at::cat(parts, 1).slice(1, 0, all, 4);
}

TEST(Families, ComputeTheLogitsOfTransformers) {
  EXPECT_GE(fixtures().size(), 20u);
  for (const auto& folder : fixtures()) {
    const auto model = load_model(folder, torch::kFloat);
    const SafetensorsSource expected(folder / "transformers.safetensors");
    const auto tokens = expected.read("tokens"), logits = expected.read("logits");
    EXPECT_LT((logits_of(model.decoder, tokens) - logits).abs().max().item<double>(), 1e-4) << folder;
    KvCache cache(model.decoder->config().layers, {.positions = tokens.size(1)});
    EXPECT_LT((logits_of(model.decoder, tokens, &cache) - logits).abs().max().item<double>(), 1e-4)
        << folder << " with a cache";
  }
}

TEST(Families, AreWrittenAsTheyWereRead) {
  for (const auto& folder : fixtures()) {
    const auto file = (folder / "config.json").string();
    const Json json = read_json(file);
    const auto config = config_from_json(json, file);
    const Json written = config_to_json(config, nullptr);
    const bool is_llama = folder.filename() == "mistral-without-window";
    EXPECT_EQ(written["model_type"], is_llama ? Json("llama") : json["model_type"]) << folder;
    EXPECT_TRUE(equal_fields(config_from_json(written, "written"), config)) << folder;
    // What version 4 reads is the same.
    auto older = written;
    older.erase("rope_parameters");
    older.erase("layer_types");
    if (!json.contains("no_rope_layers")) older.erase("no_rope_layers");
    if (json["model_type"] == "smollm3") continue;
    EXPECT_TRUE(equal_fields(config_from_json(older, "older"), config)) << folder;
  }
}

TEST(Families, FitTheModelsThatTheyCanExpress) {
  const auto family_of = [](auto change) {
    auto config = config_of("4x3");
    for (size_t i = 0; i < config.layers.size(); ++i) change(config.layers[i], i);
    complete(config);
    const auto json = config_to_json(config, nullptr);
    EXPECT_TRUE(equal_fields(config_from_json(json, "test"), config)) << json["model_type"];
    return json["model_type"].get<std::string>();
  };
  EXPECT_EQ(family_of([](LayerConfig&, size_t) {}), "llama");
  EXPECT_EQ(family_of([](LayerConfig& l, size_t) { l.qkv_bias = l.output_bias = l.ffn.bias = true; }), "llama");
  EXPECT_EQ(family_of([](LayerConfig& l, size_t) { l.qkv_bias = true; }), "qwen2");
  EXPECT_EQ(family_of([](LayerConfig& l, size_t) { l.window = 5; }), "mistral");
  EXPECT_EQ(family_of([](LayerConfig& l, size_t) { l.qk_norm = true; }), "qwen3");
  EXPECT_EQ(family_of([](LayerConfig& l, size_t i) {
              l.qk_norm = true;
              l.window = i == 1 ? 4 : 0;
            }),
            "qwen3");
  EXPECT_EQ(family_of([](LayerConfig& l, size_t i) {
              if (i == 1) l.rotary = {.kind = "none"};
            }),
            "smollm3");
  EXPECT_EQ(family_of([](LayerConfig& l, size_t i) { l.window = i == 2 ? 4 : 0; }), "smollm3");
  EXPECT_EQ(family_of([](LayerConfig& l, size_t i) { l.window = i == 2 ? 4 : i; }), "prism") << "two widths";
  EXPECT_EQ(family_of([](LayerConfig& l, size_t i) { l.ffn.width = i == 1 ? 8 : 12; }), "prism");
  EXPECT_EQ(family_of([](LayerConfig& l, size_t) { l.output_bias = true; }), "prism");
  EXPECT_EQ(family_of([](LayerConfig& l, size_t) { l.rotary.factors = {1, 2}; }), "prism");
  EXPECT_EQ(family_of([](LayerConfig& l, size_t) {
              l.rotary = {.base = 5e5, .scaling = "llama3", .factor = 8, .original_context = 4};
            }),
            "llama");
}

TEST(Families, TakeTransformersDefaults) {
  const auto layer_of = [](const char* name, auto change) {
    auto json = read_json((kFolder / name / "config.json").string());
    change(json);
    return config_from_json(json, "test").layers.at(1);
  };
  const auto window = [&](const char* name) {
    return layer_of(name,
                    [](Json& j) {
                      for (const char* member : {"sliding_window", "layer_types", "max_window_layers"}) j.erase(member);
                      j["use_sliding_window"] = true;
                      if (j["model_type"] != "smollm3") j["max_window_layers"] = 1;
                    })
        .window;
  };
  EXPECT_EQ(window("mistral"), 4096);
  EXPECT_EQ(window("qwen2-with-windows"), 4096);
  EXPECT_EQ(window("qwen3"), 4096);
  EXPECT_EQ(window("smollm3-with-windows"), 0);
  const auto kv_heads = [&](const char* name, bool is_null) {
    const auto change = [is_null](Json& j) {
      j["num_attention_heads"] = 16;
      j.erase("num_key_value_heads");
      if (is_null) j["num_key_value_heads"] = nullptr;
    };
    return layer_of(name, change).kv_heads;
  };
  EXPECT_EQ(kv_heads("smollm3", false), 4);
  EXPECT_EQ(kv_heads("mistral", false), 8);
  for (const char* name : {"smollm3", "mistral", "qwen2"}) EXPECT_EQ(kv_heads(name, true), 16) << name;
  for (const bool is_null : {false, true}) EXPECT_EQ(kv_heads("llama", is_null), 16);
}

TEST(Families, RefuseWhatContradictsItself) {
  const auto refused = [](const char* name, auto change, const std::string& words) {
    expect_refused(read_json((kFolder / name / "config.json").string()), change, words);
  };
  refused(
      "smollm3",
      [](Json& j) {
        j["no_rope_layers"] = {1, 0};
      },
      "expected no_rope_layers of 3 layers; found 2");
  refused(
      "smollm3",
      [](Json& j) {
        j.erase("no_rope_layers");
        j["no_rope_layer_interval"] = 0;
      },
      "expected no_rope_layer_interval of at least 1; found 0");
  refused(
      "qwen2", [](Json& j) { j["layer_types"] = {"full_attention"}; }, "expected layer_types of 3 layers; found 1");
  refused(
      "qwen2", [](Json& j) { j["layer_types"][1] = "chunked_attention"; },
      "expected layer_types full_attention or sliding_attention; found \"chunked_attention\"");
  refused(
      "qwen2", [](Json& j) { j["layer_types"][1] = "sliding_attention"; },
      "expected use_sliding_window and a sliding_window for layer_types with sliding_attention; found none");
  refused(
      "mistral", [](Json& j) { j["sliding_window"] = -1; }, "window: expected a size from 0");
  refused(
      "qwen3", [](Json& j) { j["mlp_bias"] = true; }, "expected mlp_bias = false; found true");
  refused(
      "llama",
      [](Json& j) {
        j["rope_parameters"] = {{"rope_type", "dynamic"}, {"factor", 2.0}};
      },
      "found \"dynamic\", which has no fixed meaning with a cache of keys");
  refused(
      "llama",
      [](Json& j) {
        j["rope_parameters"] = {{"rope_type", "longrope"}, {"factor", 2.0}};
      },
      "expected rope_type default, linear, yarn or llama3; found \"longrope\"");
}

/// A folder with the weights in several files and their index.
class ShardedFolder : public testing::Test {
 protected:
  ShardedFolder() {
    for (const auto& entry : fs::directory_iterator(kFolder / "several-files"))
      fs::copy_file(entry.path(), temporary_.path() / entry.path().filename());
    index_ = read_json(file());
  }
  std::string file() const { return (temporary_.path() / "model.safetensors.index.json").string(); }
  std::string message(const Json& index) const {
    write_file(file(), to_text(index));
    return message_of([&] { load_model(temporary_.path(), torch::kFloat); });
  }

  const TemporaryFolder temporary_;
  Json index_;
};

TEST_F(ShardedFolder, IsRefusedIfItsIndexIsWrong) {
  EXPECT_EQ(message(index_), "");
  auto index = index_;
  index.erase("weight_map");
  EXPECT_CONTAINS(message(index), "expected a weight_map in");
  index = index_;
  index["weight_map"]["model.norm.weight"] = "../model.safetensors";
  EXPECT_CONTAINS(message(index), "expected the name of a file beside it for model.norm.weight");
  index["weight_map"]["model.norm.weight"] = 7;
  EXPECT_CONTAINS(message(index), "expected the name of a file beside it for model.norm.weight; found 7");
  index = index_;
  index["weight_map"].erase("model.norm.weight");
  EXPECT_CONTAINS(message(index), "expected model.norm.weight, which model-");
  index = index_;
  index["weight_map"] = Json::object();
  EXPECT_CONTAINS(message(index), "expected a weight_map in");
  index = index_;
  const std::string first = index["weight_map"]["model.embed_tokens.weight"];
  index["weight_map"]["model.norm.weight"] = first;
  EXPECT_CONTAINS(message(index), "model.norm.weight");
  fs::remove(temporary_.path() / first);
  EXPECT_CONTAINS(message(index_), first);
}

TEST(Families, MaySaveWhatTheyComputeOrTie) {
  const TemporaryFolder folder;
  const auto config = config_of("4x1");
  Decoder decoder(config);
  decoder->initialise(1);
  save_model(folder.path(), *decoder, nullptr);
  const SafetensorsSource saved(folder.path() / "model.safetensors");
  std::vector<NamedTensor> tensors;
  for (const auto& name : saved.names()) tensors.push_back({name, saved.read(name)});
  tensors.push_back({"lm_head.weight", saved.read("model.embed_tokens.weight")});
  tensors.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", torch::ones({2})});
  write_tensors(folder.path() / "model.safetensors", tensors);
  EXPECT_NO_THROW(load_model(folder.path(), torch::kFloat));
  tensors.push_back({"model.layers.0.more", torch::ones({2})});
  write_tensors(folder.path() / "model.safetensors", tensors);
  EXPECT_REFUSED(load_model(folder.path(), torch::kFloat), "found model.layers.0.more as well");
}

}  // namespace
}  // namespace prism
