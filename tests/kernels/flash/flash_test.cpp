// The flash kernels of every instruction set against the definition in double precision, on raw memory.
#include "prism/kernels/flash/flash.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "prism/core/random.h"
#include "prism/kernels/simd/isa.h"
#include "tests/kernels/flash/flash_run.h"
#include "tests/kernels/isas.h"

namespace prism {
namespace {

template <class Storage>
void expect_equal(const Case& c, const flash::Kernels& kernels, int threads) {
  SCOPED_TRACE(testing::Message() << kernels.name << " " << sizeof(Storage) << " bytes, " << c);
  const Errors errors = errors_of<Storage>(c, kernels, threads);
  EXPECT_LE(errors.out, 1);
  EXPECT_LE(errors.dq, 1);
  EXPECT_LE(errors.dk, 1);
  EXPECT_LE(errors.dv, 1);
  EXPECT_LE(errors.lse, 1);
}

class Flash : public IsaTest {
 protected:
  static const flash::Kernels& kernels() { return *flash::kernels_of(GetParam()); }
  static void expect_equal_in_every_type(const Case& c, int threads = 2) {
    expect_equal<uint16_t>(c, kernels(), threads);
    expect_equal<float>(c, kernels(), threads);
  }
};

class SlowFlash : public Flash {};

TEST_P(Flash, EqualsTheDefinitionAtEveryWidth) {
  for (const int64_t dim : {8, 16, 24, 40, 64, 72, 96, 128, 136, 192, 256, 384, 512})
    expect_equal_in_every_type(
        {.queries = 19, .keys = 43, .heads = 2, .kv_heads = 2, .key_dim = dim, .value_dim = dim});
  expect_equal_in_every_type({.queries = 30, .keys = 30, .key_dim = 40, .value_dim = 200});
  expect_equal_in_every_type({.queries = 30, .keys = 30, .key_dim = 200, .value_dim = 8});
}

TEST_P(Flash, EqualsTheDefinitionAcrossTilesAndBlocks) {
  expect_equal_in_every_type({.queries = 300, .keys = 300, .heads = 2, .kv_heads = 1, .key_dim = 16, .value_dim = 16});
  expect_equal_in_every_type({.queries = 100, .keys = 600, .key_dim = 24, .value_dim = 24});
  expect_equal_in_every_type({.queries = 97, .keys = 530, .key_dim = 264, .value_dim = 264});
  expect_equal_in_every_type({.queries = 1, .keys = 1});
  expect_equal_in_every_type({.queries = 1, .keys = 257, .key_dim = 32, .value_dim = 32});
  expect_equal_in_every_type({.queries = 1, .keys = 513, .key_dim = 32, .value_dim = 32});
  expect_equal_in_every_type({.queries = 70, .keys = 1100, .key_dim = 16, .value_dim = 24});
  expect_equal_in_every_type({.queries = 12, .keys = 5});  // the first queries see no key
}

TEST_P(Flash, EqualsTheDefinitionForFewQueriesOfManyHeads) {
  for (const int64_t heads : {1, 3, 8, 9, 11, 16, 32, 33})
    expect_equal_in_every_type({.batch = 2, .queries = 1, .keys = 700, .heads = heads, .key_dim = 40, .value_dim = 72});
  for (const int64_t queries : {2, 5, 8, 9})
    expect_equal_in_every_type(
        {.queries = queries, .keys = 1100, .heads = 6, .kv_heads = 2, .key_dim = 64, .value_dim = 264});
  expect_equal_in_every_type(
      {.batch = 2, .queries = 4, .keys = 1400, .heads = 6, .kv_heads = 2, .document = 401, .drop_a_head = true});
}

TEST_P(Flash, ServesDocumentsHeadsInGroupsAndHeadsThatAreNotKept) {
  expect_equal_in_every_type(
      {.batch = 2, .queries = 90, .keys = 90, .heads = 6, .kv_heads = 2, .document = 37, .drop_a_head = true});
  expect_equal_in_every_type(
      {.batch = 9, .queries = 20, .keys = 20, .heads = 4, .kv_heads = 2, .key_dim = 24, .value_dim = 24});
  expect_equal_in_every_type(
      {.queries = 300, .keys = 700, .heads = 2, .key_dim = 16, .value_dim = 16, .document = 150});
  for (const int threads : {1, 2})  // the backward pass splits work by heads, by tiles
    expect_equal_in_every_type(
        {.queries = 130, .keys = 520, .heads = 4, .kv_heads = 4, .document = 70, .drop_a_head = true}, threads);
}

TEST_P(Flash, EqualsTheDefinitionForAnyIntervals) {
  expect_equal_in_every_type({.batch = 2, .queries = 50, .keys = 61, .heads = 6, .kv_heads = 2, .scattered = true});
  expect_equal_in_every_type({.queries = 203, .keys = 590, .key_dim = 24, .value_dim = 40, .scattered = true}, 3);
  expect_equal_in_every_type({.queries = 101, .keys = 300, .key_dim = 136, .value_dim = 264, .scattered = true});
  expect_equal_in_every_type({.batch = 3, .queries = 5, .keys = 1700, .heads = 4, .kv_heads = 2, .scattered = true});
}

TEST_P(Flash, StandsLargeScores) {
  // Scores of about +-80 on the average row, on which a softmax that does not subtract its largest score overflows.
  expect_equal_in_every_type({.queries = 40, .keys = 300, .key_dim = 64, .value_dim = 64, .magnitude = 30});
  expect_equal_in_every_type(
      {.queries = 40, .keys = 300, .key_dim = 64, .value_dim = 64, .magnitude = 0});  // all equal
}

TEST_P(Flash, EqualsTheDefinitionForOneHotInputs) {
  for (const double magnitude : {1.0, 100.0, 1e4, 1e10})
    for (const int64_t queries : {3, 40, 130})
      expect_equal_in_every_type({.queries = queries,
                                  .keys = 300,
                                  .heads = 2,
                                  .key_dim = 64,
                                  .value_dim = 40,
                                  .magnitude = magnitude,
                                  .one_hot = true});
}

template <class Storage>
void expect_fault_found(const Case& c, const flash::Kernels& kernels) {
  SCOPED_TRACE(testing::Message() << kernels.name << " " << sizeof(Storage) << " bytes, " << c);
  const Errors errors = errors_of<Storage>(c, kernels, 2);
  EXPECT_GT(errors.out, 1);
  EXPECT_GT(errors.dq, 1);
  EXPECT_GT(errors.dk, 1);
  EXPECT_GT(errors.dv, 1);
}

TEST_P(Flash, ExceedsItsBoundWhenOneKeyIsDropped) {
  const Case few{.queries = 40, .keys = 60, .key_dim = 32, .value_dim = 32, .drop_a_key = true};
  // Large scores, so that one key of 300 has enough weight to show in bfloat16.
  const Case many{.queries = 300, .keys = 300, .key_dim = 16, .value_dim = 16, .magnitude = 2, .drop_a_key = true};
  const Case tiles{.queries = 97, .keys = 530, .key_dim = 24, .value_dim = 24, .drop_a_key = true};
  for (const Case& c : {few, many}) expect_fault_found<uint16_t>(c, kernels());
  for (const Case& c : {few, many, tiles}) expect_fault_found<float>(c, kernels());
}

template <class Storage>
void expect_same_bits(const Case& c, const flash::Kernels& kernels) {
  const FlashRun<Storage> one(c, kernels, 1), three(c, kernels, 3);
  for (const auto member :
       {&Tensors<Storage>::out, &Tensors<Storage>::dq, &Tensors<Storage>::dk, &Tensors<Storage>::dv})
    EXPECT_TRUE((one.results().*member).values == (three.results().*member).values) << kernels.name << " " << c;
  EXPECT_TRUE(one.results().lse == three.results().lse) << kernels.name << " " << c;
}

TEST_P(Flash, GivesTheSameBitsForEveryNumberOfThreads) {
  // The backward pass of the last two splits work by heads on one thread, by tiles on three.
  for (const Case& c :
       {Case{.queries = 290, .keys = 700, .heads = 2, .kv_heads = 1, .key_dim = 24, .value_dim = 24},
        Case{.batch = 20, .queries = 30, .keys = 30},
        Case{.batch = 2, .queries = 200, .keys = 600, .heads = 4, .kv_heads = 2, .drop_a_head = true}}) {
    expect_same_bits<uint16_t>(c, kernels());
    expect_same_bits<float>(c, kernels());
  }
}

TEST_P(SlowFlash, EqualsTheDefinitionForAThousandRandomShapes) {
  Random random(11);
  for (int i = 0; i < 1000; ++i) {
    Case c;
    c.batch = 1 + static_cast<int64_t>(random.below(3));
    c.kv_heads = 1 + static_cast<int64_t>(random.below(2));
    c.heads = c.kv_heads * (1 + static_cast<int64_t>(random.below(3)));
    c.keys = 1 + static_cast<int64_t>(random.below(i % 10 == 0 ? 600 : 80));
    c.queries = 1 + static_cast<int64_t>(random.below(static_cast<uint64_t>(c.keys)));
    c.key_dim = 8 * (1 + static_cast<int64_t>(random.below(12)));
    c.value_dim = 8 * (1 + static_cast<int64_t>(random.below(12)));
    c.document = random.below(3) == 0 ? 1 + static_cast<int64_t>(random.below(40)) : 0;
    c.drop_a_head = c.batch * c.heads > 1 && random.below(4) == 0;
    expect_equal_in_every_type(c, 1 + i % 3);
    if (testing::Test::HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(, Flash, testing::ValuesIn(isas_from(Isa::avx2)), isa_title);
INSTANTIATE_TEST_SUITE_P(, SlowFlash, testing::ValuesIn(isas_from(Isa::avx2)), isa_title);

}  // namespace
}  // namespace prism
