#include "prism/bench/inference.h"

#include <gtest/gtest.h>

#include "tests/core/message_of.h"
#include "tests/data/labelled/made_classifier.h"

namespace prism {
namespace {

TEST(TextTiming, CountsTheFlopsOfEachText) {
  const auto rows = bench_texts(make_classifier({}), {.tokens = {5, 24}, .texts = {1, 2}, .rounds = 1});
  ASSERT_EQ(rows.size(), 4u);
  for (const auto& row : rows) {
    const auto tokens = static_cast<double>(row.tokens), texts = static_cast<double>(row.sequences);
    // Two layers: 4 projections of 16 x 16, a gated part of 3 products of 16 x 24, q k^T and p v.
    const double text = 2 * tokens * 2 * (4 * 16 * 16 + 3 * 16 * 24 + 2 * tokens * 16);
    EXPECT_EQ(row.work, texts * text) << row.name;
    EXPECT_GT(row.limit_share, 0) << row.name;
  }
  EXPECT_EQ(rows[0].name, "text5");
  EXPECT_EQ(rows[3].name, "text24x2");
}

TEST(TextTiming, RefusesBatchesThatDoNotFit) {
  const auto classifier = make_classifier({});
  EXPECT_REFUSED(bench_texts(classifier, {.tokens = {25}}), "1 to 24 tokens, the model's context");
  EXPECT_REFUSED(bench_texts(classifier, {.tokens = {24}, .texts = {65537}}), "1 to 65536 texts");
  EXPECT_REFUSED(bench_texts(make_classifier({.context = int64_t{1} << 24}), {.tokens = {1 << 24}, .texts = {65536}}),
                 "the activations of 65536 texts");
}

}  // namespace
}  // namespace prism
