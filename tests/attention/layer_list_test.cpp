#include "prism/attention/layer_list.h"

#include <gtest/gtest.h>

#include "prism/core/fields.h"

namespace prism {
namespace {

std::vector<LayerConfig> layers_of(const std::vector<LayerHeads>& heads) {
  std::vector<LayerConfig> layers;
  for (const auto& [query_heads, kv_heads, head_dim] : heads) {
    auto& layer = layers.emplace_back();
    layer.heads = query_heads;
    layer.kv_heads = kv_heads;
    layer.head_dim = head_dim;
  }
  return layers;
}

TEST(CommonLayer, IsTheLayerThatAllAreAndNoneWhereOneFieldDiffers) {
  auto layers = layers_of({{4, 2, 8}, {4, 2, 8}, {4, 2, 8}});
  ASSERT_TRUE(common_layer(layers).has_value());
  EXPECT_TRUE(equal_fields(*common_layer(layers), layers[1]));
  EXPECT_FALSE(common_layer({}).has_value());
  for (size_t i = 0; i < layers.size(); ++i) {
    auto changed = layers;
    changed[i].rotary.base = 5e5;
    EXPECT_FALSE(common_layer(changed).has_value()) << i;
  }
}

TEST(BaseHeads, AreThoseOfTheLastLayer) {
  EXPECT_EQ(base_heads(layers_of({{2, 2, 16}, {4, 2, 8}})), (LayerHeads{4, 2, 8}));
}

TEST(BaseHeads, MakeALayerListUniformWhereEveryLayerHasThem) {
  auto layers = layers_of({{4, 2, 8}, {4, 2, 8}});
  layers[0].ffn.width = 3;
  EXPECT_TRUE(is_uniform(layers)) << "of heads";
  for (const auto& other : {LayerHeads{2, 2, 8}, {4, 4, 8}, {4, 2, 16}})
    EXPECT_FALSE(is_uniform(layers_of({other, {4, 2, 8}, {4, 2, 8}})));
}

}  // namespace
}  // namespace prism
