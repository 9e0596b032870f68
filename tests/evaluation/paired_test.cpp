#include "prism/evaluation/paired.h"

#include <gtest/gtest.h>

#include <cmath>

#include "prism/core/error.h"

namespace prism {
namespace {

TEST(PairedLoss, OfDocumentsOfOneLengthIsTheMeanDifferenceWithItsStandardError) {
  // Differences per token are -0.1, -0.2, -0.6: mean -0.3, sample standard deviation sqrt(0.07).
  const std::vector<DocumentScore> a = {{20, 10}, {31, 10}, {12, 10}}, b = {{21, 10}, {33, 10}, {18, 10}};
  const auto paired = paired_loss(a, b);
  EXPECT_NEAR(paired.difference, -0.3, 1e-12);
  EXPECT_NEAR(paired.standard_error, std::sqrt(0.07 / 3), 1e-12);
  EXPECT_NEAR(paired.interval.high - paired.difference, 4.30265 * std::sqrt(0.07 / 3), 1e-5);
  EXPECT_EQ(paired.documents, 3);
  EXPECT_EQ(paired.better, 3);
}

TEST(PairedLoss, WeighsDocumentsByTheirTokens) {
  const std::vector<DocumentScore> a = {{100, 90}, {30, 10}}, b = {{109, 90}, {28, 10}};
  const auto paired = paired_loss(a, b);
  EXPECT_NEAR(paired.difference, -0.07, 1e-12);  // -7 nats over 100 tokens
  // Residuals -9 + 0.07 * 90 = -2.7 and 2 + 0.07 * 10 = 2.7.
  EXPECT_NEAR(paired.standard_error, std::sqrt(2 * 2 * 2.7 * 2.7) / 100, 1e-12);
  EXPECT_EQ(paired.better, 1);
}

TEST(PairedLoss, OfOneDocumentSaysNothingSure) {
  const auto paired = paired_loss({{20, 10}, {0, 0}}, {{10, 10}, {0, 0}});
  EXPECT_EQ(paired.documents, 1);
  EXPECT_FALSE(paired.interval.excludes(0));
}

TEST(PairedLoss, OfOtherDocumentsIsABug) {
  EXPECT_THROW(paired_loss({{1, 1}}, {}), InternalError);
  EXPECT_THROW(paired_loss({{1, 1}}, {{1, 2}}), InternalError);
  EXPECT_THROW(paired_loss({{0, 0}}, {{0, 0}}), InternalError);
}

}  // namespace
}  // namespace prism
