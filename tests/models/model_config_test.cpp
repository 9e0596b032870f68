// The fields of a layer are listed only in LayerConfig. These tests do not name them, so they also cover new fields.
#include "prism/models/model_config.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "prism/checkpoint/config_json.h"
#include "prism/core/fields.h"
#include "tests/core/message_of.h"

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
    if (value == plain[name]) continue;  // heads
    ++fields;
    ModelConfig config;
    config.layers.resize(2);
    read_fields(config, Json{{name, value}}, "");
    EXPECT_REFUSED(expand_shorthand(config), "found both, " + name + " beside layers");
  }
  EXPECT_EQ(fields + 2, static_cast<int>(plain.size())) << "all but heads and kv_heads";
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

}  // namespace
}  // namespace prism
