#include "prism/analysis/arms.h"

#include <gtest/gtest.h>

#include "tests/core/message_of.h"

namespace prism {
namespace {

ArmModel model(const std::string& name, int64_t heads, std::optional<int64_t> seed) {
  ArmModel result{.name = name, .config = {}, .tokenizer = "t", .end_of_text = 0, .seed = seed};
  result.config.context = 32;
  result.config.layers.resize(2);
  for (auto& layer : result.config.layers) layer.heads = heads;
  return result;
}

std::vector<std::string> names_in(const std::vector<ArmModel>& arm) {
  std::vector<std::string> names;
  for (const auto& entry : arm) names.push_back(entry.name);
  return names;
}

TEST(Arms, PairModelsBySeedIfAllSeedsAreKnown) {
  const std::vector<ArmModel> models = {model("a1", 2, 1), model("a2", 2, 2)};
  const Arms arms = pair_arms(models, {model("b2", 4, 2), model("b1", 4, 1)});
  EXPECT_EQ(names_in(arms.models), (std::vector<std::string>{"a1", "a2"}));
  EXPECT_EQ(names_in(arms.against), (std::vector<std::string>{"b1", "b2"}));
  const Arms unknown = pair_arms(models, {model("b2", 4, 2), model("b", 4, {})});
  EXPECT_EQ(names_in(unknown.against), (std::vector<std::string>{"b2", "b"})) << "in the order given";
  const Arms unequal = pair_arms(models, {model("b2", 4, 2)});
  EXPECT_EQ(names_in(unequal.against), (std::vector<std::string>{"b2"}));
  EXPECT_REFUSED(pair_arms(models, {model("b2", 4, 2), model("b3", 4, 3)}), "found seed 1 of a1 on one side only");
}

TEST(Arms, RefuseModelsThatCannotBeCompared) {
  ArmModel deeper = model("deep", 2, {}), other = model("other", 2, {});
  deeper.config.layers.resize(3);
  other.tokenizer = "u";
  EXPECT_REFUSED(pair_arms({model("a", 2, {})}, {deeper}), "found 2 in a and 3 in deep");
  EXPECT_REFUSED(pair_arms({model("a", 2, {}), other}, {}), "found t in a and u in other");
  EXPECT_REFUSED(pair_arms({model("a", 2, {}), model("b", 4, {})}, {}), "--against");
  EXPECT_REFUSED(pair_arms({}, {}), "found none");
}

TEST(Arms, ShareAContextAndADocumentMaskOrSayWhichToGive) {
  ArmModel shorter = model("short", 2, {});
  shorter.config.context = 16;
  shorter.document_mask = true;
  const Arms same = pair_arms({model("a", 2, {})}, {model("b", 4, {})});
  EXPECT_EQ(shared_context(same, 0), 32);
  EXPECT_EQ(shared_context(same, 8), 8);
  EXPECT_FALSE(shared_document_mask(same));
  const Arms mixed = pair_arms({model("a", 2, {})}, {shorter});
  EXPECT_REFUSED(shared_context(mixed, 0), "with --tokens");
  EXPECT_REFUSED(shared_context(mixed, 32), "1 to 16 tokens");
  EXPECT_EQ(shared_context(mixed, 16), 16);
  EXPECT_REFUSED(shared_document_mask(mixed), "found short with and a without it");
}

}  // namespace
}  // namespace prism
