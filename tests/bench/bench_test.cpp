// What the measurements measure: turns, medians, shapes. No test times anything.
#include <gtest/gtest.h>

#include "prism/bench/attention.h"
#include "tests/core/message_of.h"

namespace prism {
namespace {

TEST(TakeTurns, AlternatesAfterOneCallOfEachThatDoesNotCount) {
  std::string calls;
  const auto medians = take_turns([&] { calls += 'a'; }, [&] { calls += 'b'; }, 3);
  EXPECT_EQ(calls, "abababab");
  EXPECT_GE(medians.prism_ms, 0);
}

TEST(BenchAttention, NamesTheShapeItMeasured) {
  const AttentionShape shape{.batch = 2, .heads = 4, .kv_heads = 2, .tokens = 5, .keys = 9, .head_dim = 8};
  const auto row = bench_attention(shape, {.dtype = "f32", .pass = "forward", .rounds = 1, .threads = 1});
  EXPECT_EQ(row.kv_heads, 2);
  EXPECT_EQ(row.keys, 9);
  EXPECT_GT(row.prism_ms, 0);
  EXPECT_DOUBLE_EQ(row.ratio, row.peer_ms / row.prism_ms);
  EXPECT_GT(row.peak_share, 0);
}

TEST(BenchAttention, RefusesShapesThatMakeNoSense) {
  const AttentionBench bench{.rounds = 1};
  EXPECT_REFUSED(bench_attention({.heads = 4, .kv_heads = 3}, bench), "divide 4 heads");
  EXPECT_REFUSED(bench_attention({.tokens = 9, .keys = 5}, bench), "at least as many keys");
  EXPECT_REFUSED(bench_attention({.lengths = "odd"}, bench), "ragged");
  EXPECT_REFUSED(bench_attention({}, {.pass = "back"}), "forward_backward");
}

}  // namespace
}  // namespace prism
