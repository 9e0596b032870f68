// How documents are cut into windows.
#include "prism/evaluation/windows.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace prism {
namespace {

/// For every token but the first, the number of tokens it is predicted from; -1: not predicted, -2: more than once.
std::vector<int64_t> contexts(int64_t tokens, int64_t size, int64_t stride) {
  std::vector<int64_t> seen(static_cast<size_t>(std::max<int64_t>(tokens - 1, 0)), -1);
  for (const auto& window : cut_windows(100, tokens, size, stride)) {
    EXPECT_LE(window.length, size);
    for (int64_t i = window.counted_from; i < window.length; ++i) {
      auto& context = seen.at(static_cast<size_t>(window.begin - 100 + i));
      context = context == -1 ? i + 1 : -2;
    }
  }
  return seen;
}

using Contexts = std::vector<int64_t>;

TEST(CutWindows, StandSideBySideWhenTheStrideIsTheWindow) {
  EXPECT_EQ(contexts(9, 4, 4), (Contexts{1, 2, 3, 4, 1, 2, 3, 4}));
  EXPECT_EQ(contexts(7, 4, 4), (Contexts{1, 2, 3, 4, 1, 2}));
}

TEST(CutWindows, GiveLaterTokensTheContextThatASmallerStrideLeaves) {
  EXPECT_EQ(contexts(9, 4, 2), (Contexts{1, 2, 3, 4, 3, 4, 3, 4}));
  EXPECT_EQ(contexts(8, 4, 2), (Contexts{1, 2, 3, 4, 3, 4, 3}));
  EXPECT_EQ(contexts(9, 4, 1), (Contexts{1, 2, 3, 4, 4, 4, 4, 4}));
  EXPECT_EQ(contexts(9, 4, 3), (Contexts{1, 2, 3, 4, 2, 3, 4, 2}));
}

TEST(CutWindows, TakeOneWindowForADocumentThatFits) {
  EXPECT_EQ(contexts(5, 4, 2), (Contexts{1, 2, 3, 4}));
  EXPECT_EQ(cut_windows(0, 5, 4, 2).size(), 1U);
  EXPECT_EQ(contexts(3, 4, 4), (Contexts{1, 2}));
  EXPECT_EQ(contexts(2, 1, 1), (Contexts{1}));
}

TEST(CutWindows, GiveNothingForADocumentWithoutPredictions) {
  EXPECT_TRUE(cut_windows(0, 0, 4, 4).empty());
  EXPECT_TRUE(cut_windows(0, 1, 4, 4).empty());
}

TEST(CutWindows, PredictEveryTokenOnceWhateverTheSizes) {
  for (int64_t tokens = 0; tokens < 20; ++tokens) {
    for (int64_t size = 1; size < 8; ++size) {
      for (int64_t stride = 1; stride <= size; ++stride) {
        const auto seen = contexts(tokens, size, stride);
        for (size_t i = 0; i < seen.size(); ++i)
          ASSERT_GE(seen[i], std::min<int64_t>(static_cast<int64_t>(i) + 1, size - stride + 1));
      }
    }
  }
}

}  // namespace
}  // namespace prism
