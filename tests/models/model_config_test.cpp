// The fields of a layer are listed only in LayerConfig. These tests do not name them, so they also cover new fields.
#include "prism/models/model_config.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "prism/checkpoint/config_json.h"
#include "prism/core/fields.h"
#include "tests/core/message_of.h"
#include "tests/models/configs.h"

namespace prism {
namespace {

/// Changes every value.
struct Changer {
  template <class T>
  void operator()(const char*, T& value, const char*) {
    if constexpr (std::is_same_v<T, bool>) {
      value = !value;
    } else if constexpr (std::is_same_v<T, std::string>) {
      value += "?";
    } else if constexpr (std::is_arithmetic_v<T>) {
      value += 2;
    } else if constexpr (detail::IsVector<T>::value) {
      value.emplace_back();
    } else {
      value.visit(*this);
    }
  }
};

/// A layer that differs from the default in every field except the heads.
LayerConfig changed_layer() {
  LayerConfig layer;
  Changer changer;
  layer.visit_common(changer);
  return layer;
}

TEST(ModelConfig, GivesAllLayersEveryFieldOfTheShorthand) {
  ModelConfig config;
  config.schedule = "2x1,4x1";
  config.kv_schedule = "1x2";
  config.each = changed_layer();
  auto read = fields_from_json<ModelConfig>(fields_to_json(config), "");
  expand_shorthand(read);
  ASSERT_EQ(read.layers.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    auto expected = changed_layer();
    expected.heads = i == 0 ? 2 : 4;
    expected.kv_heads = 1;
    EXPECT_TRUE(equal_fields(read.layers[i], expected)) << fields_to_json(read.layers[i]);
  }
  EXPECT_TRUE(equal_fields<LayersShorthand>(read, {})) << "the shorthand must be empty";
}

TEST(ModelConfig, RefusesEveryFieldOfTheShorthandBesideLayers) {
  const Json changed = fields_to_json(changed_layer()), plain = fields_to_json(LayerConfig());
  int fields = 0;
  for (const auto& [name, value] : changed.items()) {
    if (value == plain[name]) continue;  // heads and mirror_of
    ++fields;
    ModelConfig config;
    config.layers.resize(2);
    read_fields(config, Json{{name, value}}, "");
    EXPECT_REFUSED(expand_shorthand(config), "found both, " + name + " beside layers");
  }
  EXPECT_EQ(fields + 3, static_cast<int>(plain.size())) << "all but heads, kv_heads and mirror_of";
}

TEST(ModelConfig, SaysOfALayersFieldThatItIsShorthandForEveryLayer) {
  const auto rows = describe_fields<ModelConfig>();
  const auto help_of = [&](const std::string& path) {
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& one) { return one.path == path; });
    return row == rows.end() ? "" : row->help;
  };
  EXPECT_EQ(help_of("qk_norm"), "shorthand for every layer: " + help_of("layers[i].qk_norm"));
  EXPECT_NE(help_of("rotary.base"), "");
  EXPECT_EQ(help_of("heads"), "");
  EXPECT_EQ(help_of("kv_heads"), "");
}

TEST(ModelConfig, IsSavedCompleteWithoutTheShorthand) {
  ModelConfig config;
  config.vocab_size = 50;
  config.d_model = 48;
  config.schedule = "2x1,4x2";
  config.ffn_width = 64;
  expand_shorthand(config);
  complete(config);
  const Json json = config_to_json(config, nullptr), shorthand = fields_to_json(LayersShorthand());
  for (const auto& [name, value] : shorthand.items()) EXPECT_FALSE(json["model"].contains(name)) << name;
  EXPECT_TRUE(equal_fields(fields_from_json<ModelConfig>(json["model"], ""), config));
}

TEST(ModelConfig, RefusesRatiosThatDoNotDivideEveryLayer) {
  EXPECT_REFUSED(grouped("3x1,6x2", "/2"), "found 3 in layer 0");
  EXPECT_REFUSED(grouped("4x2", "/0"), "a ratio such as /4");
  EXPECT_REFUSED(grouped("4x2", "/2x"), "a ratio such as /4");
}

TEST(ModelConfig, RefusesShorthandTogetherWithLayersAndNeither) {
  auto both = config_of("2x1,4x2");
  both.schedule = "4x3";
  EXPECT_NE(message_of([&] { expand_shorthand(both); }).find("found both"), std::string::npos);
  ModelConfig neither;
  EXPECT_NE(message_of([&] { expand_shorthand(neither); }).find("found neither"), std::string::npos);
}

TEST(ModelConfig, LetsLayersBeOverriddenAfterExpansion) {
  ModelConfig config;
  config.vocab_size = 10;
  config.d_model = 48;
  config.schedule = "4x3";
  config.ffn_width = 8;
  expand_shorthand(config);
  set_field(config, "layers[0-1].heads", "2");
  complete(config);
  EXPECT_EQ(format_head_schedule(heads_of(config)), "2x2,4x1");
  EXPECT_EQ(config.layers[1].head_dim, 24);
  EXPECT_EQ(config.layers[1].kv_heads, 2);
}

TEST(ModelConfig, RejectsSizesThatCannotBeBuilt) {
  const auto rejects = [](auto change) {
    auto config = config_of("4x2");
    change(config);
    return message_of([&] { complete(config); });
  };
  EXPECT_NE(rejects([](ModelConfig& c) { c.vocab_size = 0; }), "");
  EXPECT_NE(rejects([](ModelConfig& c) { c.layers.clear(); }), "");
  EXPECT_NE(rejects([](ModelConfig& c) { c.layers.back().kv_heads = 3; }).find("kv_heads"), std::string::npos);
  EXPECT_NE(rejects([](ModelConfig& c) { c.layers.back().ffn.width = 0; }).find("ffn.width"), std::string::npos);
  EXPECT_NE(rejects([](ModelConfig& c) {
              c.allow_any = false;
              c.layers.back().heads = c.layers.back().kv_heads = 2;
              c.layers.back().head_dim = 0;
            }).find("never falls"),
            std::string::npos);
  EXPECT_NE(rejects([](ModelConfig& c) { c.layers.back().norm = "batch"; }).find("norm rms, layer or none"),
            std::string::npos);
  EXPECT_NE(rejects([](ModelConfig& c) { c.layers.back().rotary.kind = "alibi"; }).find("rope or none"),
            std::string::npos);
  EXPECT_NE(rejects([](ModelConfig& c) { c.initialisation = "zero"; }).find("gpt2 or ladder"), std::string::npos);
  EXPECT_NE(rejects([](ModelConfig& c) {
              c.layers.back().head_dim = 24;
              c.layers.back().output_projection = false;
            }).find("add the projection"),
            std::string::npos);
  EXPECT_NE(rejects([](ModelConfig& c) {
              c.layers.back().output_bias = true;
              c.layers.back().output_projection = false;
            }).find("expected an output_projection for output_bias"),
            std::string::npos);
  EXPECT_NE(rejects([](ModelConfig& c) {
              for (auto& layer : c.layers) layer.heads = layer.kv_heads = 16, layer.head_dim = 0;
            }).find("even head width"),
            std::string::npos);
}

}  // namespace
}  // namespace prism
