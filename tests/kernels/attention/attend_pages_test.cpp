// Keys and values in pages, and the two ways in which flash goes through them.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>

#include "prism/core/error.h"
#include "prism/kernels/attention/attend.h"
#include "tests/core/message_of.h"
#include "tests/kernels/attention/attend_truth.h"
#include "tests/kernels/attention/paged_input.h"

namespace prism {
namespace {

using torch::Tensor;

constexpr int64_t kGathered = 12;  ///< positions of a page that flash does not read in place

/// Shapes of which the keys end at, just after or just before the end of a page, with queries that are decoded and
/// queries of prompts.
std::vector<AttendCase> paged_cases() {
  std::vector<AttendCase> list;
  for (const auto type : {torch::kFloat, torch::kBFloat16}) {
    list.push_back({.queries = 1, .keys = 128, .head_dim = 64, .type = type});
    list.push_back({.queries = 1, .keys = 130, .head_dim = 80, .lengths = true, .type = type});
    list.push_back({.queries = 3, .keys = 700, .heads = 9, .groups = 3, .head_dim = 64, .lengths = true, .type = type});
    list.push_back({.queries = 2, .keys = 257, .head_dim = 128, .value_dim = 40, .window = 70, .type = type});
    list.push_back({.queries = 4, .keys = 140, .head_dim = 16, .documents = true, .kept = true, .type = type});
    list.push_back({.queries = 70, .keys = 321, .head_dim = 64, .type = type});
    list.push_back({.queries = 40, .keys = 130, .head_dim = 80, .lengths = true, .kept = true, .type = type});
    list.push_back({.queries = 64, .keys = 385, .head_dim = 40, .value_dim = 128, .window = 90, .type = type});
    list.push_back({.queries = 50, .keys = 129, .head_dim = 24, .lengths = true, .documents = true, .type = type});
    list.push_back({.queries = 20, .keys = 200, .head_dim = 8, .causality = Causality::full, .type = type});
    list.push_back({.queries = 30, .keys = 150, .head_dim = 24, .lengths = true, .blocks = true, .type = type});
  }
  return list;
}

class AttendPages : public testing::TestWithParam<AttendCase> {};
INSTANTIATE_TEST_SUITE_P(Shapes, AttendPages, testing::ValuesIn(paged_cases()));

TEST_P(AttendPages, GiveTheDefinitionWithEveryBackend) {
  const auto input = make_input(GetParam());
  const auto truth = loop_over_everything(input);
  for (const int64_t page : {kGathered, int64_t{64}, int64_t{128}}) {
    attend_in_every_way(
        in_pages(input, page), [&](const AttentionOutput& output, AttentionBackend backend, std::optional<bool>) {
          EXPECT_LE(difference(output, truth), tolerance(input)) << backend_name(backend) << " page " << page;
          const auto lse = output.lse_BHT.to(torch::kDouble);
          EXPECT_TRUE(torch::equal(lse.isinf(), truth.lse_BHT.isinf()));
          EXPECT_LE(torch::where(lse.isinf(), 0.0, lse - truth.lse_BHT).abs().max().item<double>(), 1e-4);
        });
  }
}

TEST_P(AttendPages, GiveFlashTheBitsOfKeysInOnePiece) {
  auto input = make_input(GetParam());
  if (!flash_backend_serves(input)) GTEST_SKIP() << "no flash kernels for this processor";
  for (const auto decodes : {std::optional<bool>(), std::optional(true), std::optional(false)}) {
    input.decodes = decodes;
    const auto whole = attend(input, AttentionBackend::flash);
    for (const int64_t page : {kGathered, int64_t{64}, int64_t{128}, int64_t{448}}) {
      const auto found = attend(in_pages(input, page), AttentionBackend::flash);
      EXPECT_TRUE(torch::equal(found.out_BTHE, whole.out_BTHE)) << page;
      EXPECT_TRUE(torch::equal(found.lse_BHT, whole.lse_BHT)) << page;
    }
  }
}

TEST_P(AttendPages, ExceedTheToleranceWhenOneKeyIsDropped) {
  const AttendCase& c = GetParam();
  const auto input = make_input(c);
  if (!flash_backend_serves(input)) GTEST_SKIP() << "no flash kernels for this processor";
  const auto paged = in_pages(input, 64);
  // The key at the first query's position, which some query sees with any mask.
  const int64_t position = (c.lengths ? c.keys - 1 : c.keys) - c.queries;
  paged.kv.k_BGSD[paged.kv.page_table_BN[0][position / 64].item<int>()].select(1, position % 64).fill_(-100);
  EXPECT_GT(difference(attend(paged, AttentionBackend::flash), loop_over_everything(input)), tolerance(input));
}

TEST(AttendPages, GiveTheSameAsWholeKeysAndValues) {
  auto input = make_input({.queries = 3, .keys = 8});
  const auto whole = attend(input, AttentionBackend::reference);
  // Sequence 0 in pages 3, 1 and sequence 1 in pages 0, 2, four positions each.
  const auto pages = [&](const Tensor& kv) {
    const auto halves = kv.contiguous().split(4, 2);
    return torch::stack({halves[0][1], halves[1][0], halves[1][1], halves[0][0]});
  };
  input.kv = {pages(input.kv.k_BGSD), pages(input.kv.v_BGSE), torch::tensor({{3, 1}, {0, 2}}, torch::kInt)};
  for (const auto backend : {AttentionBackend::reference, AttentionBackend::torch})
    EXPECT_TRUE(torch::allclose(attend(input, backend).out_BTHE, whole.out_BTHE, 1e-5, 1e-6));
}

TEST(AttendPages, AreNotReadBehindTheLengthWhereNothingWasWritten) {
  auto input = make_input({.queries = 3, .keys = 8, .head_dim = 8});
  input.kv_lengths_B = torch::tensor({5, 8}, torch::kInt);
  const auto truth = attend(input, AttentionBackend::reference).out_BTHE;
  for (auto* kv : {&input.kv.k_BGSD, &input.kv.v_BGSE}) {
    *kv = kv->reshape({2, kv->size(1), 2, 4, 8}).transpose(1, 2).reshape({4, kv->size(1), 4, 8}).contiguous();
    (*kv)[1].narrow(1, 1, 3).fill_(std::numeric_limits<float>::quiet_NaN());  // positions 5, 6, 7 of sequence 0
  }
  input.kv.page_table_BN = torch::tensor({{0, 1}, {2, 3}}, torch::kInt);
  for (const auto backend : {AttentionBackend::reference, AttentionBackend::torch, choose_backend(input)})
    EXPECT_TRUE(torch::allclose(attend(input, backend).out_BTHE, truth, 1e-5, 1e-6)) << backend_name(backend);
}

TEST(AttendRows, OfAPromptHaveTheSameBitsAloneAndInChunks) {
  for (const auto type : {torch::kFloat, torch::kBFloat16})
    for (const int64_t window : {0, 90}) {
      const auto input = make_input(
          {.batch = 1, .queries = 400, .keys = 400, .heads = 6, .head_dim = 40, .window = window, .type = type});
      if (!flash_backend_serves(input)) GTEST_SKIP() << "no flash kernels for this processor";
      const auto part = [&](int64_t first, int64_t count, bool paged) {
        auto some = paged ? in_pages(input, 64) : input;
        some.decodes = false;
        some.q_BTHD = input.q_BTHD.narrow(1, first, count);
        some.kv_lengths_B = torch::tensor({first + count}).to(torch::kInt);
        return attend(some, AttentionBackend::flash);
      };
      const auto whole = part(0, 400, false);
      for (const bool paged : {false, true})
        for (const int64_t count : {1, 3, 128, 400})
          for (const int64_t first : {0, 57, 127, 128, 255, 256, 397, 399}) {
            if (first + count > 400) continue;
            const auto found = part(first, count, paged);
            EXPECT_TRUE(torch::equal(found.out_BTHE, whole.out_BTHE.narrow(1, first, count))) << first << " " << count;
            EXPECT_TRUE(torch::equal(found.lse_BHT, whole.lse_BHT.narrow(2, first, count))) << first << " " << count;
          }
    }
}

TEST(AttendRows, ThatAreDecodedHaveTheSameBitsAloneAndInAnyBatch) {
  const std::vector<int64_t> lengths = {3, 64, 129, 701, 1300, 512};
  const auto batch = static_cast<int64_t>(lengths.size());
  for (const auto type : {torch::kFloat, torch::kBFloat16})
    for (const int64_t window : {0, 70}) {
      auto input = make_input(
          {.batch = batch, .queries = 3, .keys = 1300, .heads = 6, .head_dim = 40, .window = window, .type = type});
      if (!flash_backend_serves(input)) GTEST_SKIP() << "no flash kernels for this processor";
      input.kv_lengths_B = torch::tensor(lengths).to(torch::kInt);
      input.decodes = true;
      for (int64_t b = 0; b < batch; ++b)
        for (int64_t t = 0; t < 3; ++t) {
          auto alone = input;
          const int64_t length = lengths[static_cast<size_t>(b)] - 2 + t;
          alone.q_BTHD = input.q_BTHD.narrow(0, b, 1).narrow(1, t, 1);
          alone.kv = {input.kv.k_BGSD.narrow(0, b, 1).narrow(2, 0, length),
                      input.kv.v_BGSE.narrow(0, b, 1).narrow(2, 0, length)};
          alone.kv_lengths_B = Tensor();
          const auto expected = attend(alone, AttentionBackend::flash);
          for (const auto& together : {input, in_pages(input, 128, 1), in_pages(input, 64, 2)}) {
            const auto found = attend(together, AttentionBackend::flash);
            EXPECT_TRUE(torch::equal(found.out_BTHE[b][t], expected.out_BTHE[0][0])) << b << " " << t;
            EXPECT_TRUE(torch::equal(found.lse_BHT[b].select(1, t), expected.lse_BHT[0].select(1, 0))) << b;
          }
        }
    }
}

TEST(AttendRows, AreDecodedInAnyNumber) {
  auto input = make_input({.batch = 1, .queries = 90, .keys = 700, .heads = 6, .groups = 2, .head_dim = 24});
  if (!flash_backend_serves(input)) GTEST_SKIP() << "no flash kernels for this processor";
  input.decodes = true;
  EXPECT_LE(difference(attend(input, AttentionBackend::flash), loop_over_everything(input)), tolerance(input));
}

TEST(AttendPages, OfOneSequenceMayBeEmpty) {
  auto input = make_input({.batch = 2, .queries = 2, .keys = 130, .head_dim = 16});
  for (const auto& lengths : {torch::tensor({130, 0}, torch::kInt), torch::tensor({0, 0}, torch::kInt)}) {
    input.kv_lengths_B = lengths;
    const auto expected = attend(input, AttentionBackend::reference);
    for (const auto decodes : {true, false}) {
      auto paged = in_pages(input, 64);
      paged.decodes = decodes;
      const auto found = attend(paged);
      EXPECT_TRUE(torch::allclose(found.out_BTHE, expected.out_BTHE, 1e-5, 1e-6));
      EXPECT_TRUE(torch::equal(found.lse_BHT.isinf(), expected.lse_BHT.isinf()));
    }
  }
}

TEST(AttendPages, SendGradientsToQueries) {
  const auto input = make_input({.batch = 1, .queries = 5, .keys = 70, .head_dim = 16});
  const auto gradient_of = [&](AttentionInput some) {
    some.q_BTHD = input.q_BTHD.detach().clone().requires_grad_(true);
    attend(some).out_BTHE.square().sum().backward();
    return some.q_BTHD.grad();
  };
  EXPECT_TRUE(torch::allclose(gradient_of(in_pages(input, 64)), gradient_of(input), 1e-5, 1e-6));
}

TEST(AttendPages, MustExistWhereTheyHoldKeys) {
  auto input = in_pages(make_input({.batch = 2, .queries = 3, .keys = 130, .head_dim = 16}), 64);
  input.kv_lengths_B = torch::tensor({130, 64}, torch::kInt);
  EXPECT_NO_THROW(attend(input));
  const auto entries = input.kv.page_table_BN;
  const auto with_entry = [&](int64_t b, int64_t i, int page) {
    auto changed = input;
    changed.kv.page_table_BN = entries.clone();
    changed.kv.page_table_BN[b][i] = page;
    return changed;
  };
  EXPECT_REFUSED(attend(with_entry(0, 2, -1)), "page table: expected pages from 0 to 7; found -1 for positions 128");
  EXPECT_REFUSED(attend(with_entry(1, 0, 8)), "page table: expected pages from 0 to 7; found 8 for positions 0");
  EXPECT_NO_THROW(attend(with_entry(1, 1, -5)));
  EXPECT_NO_THROW(attend(with_entry(1, 2, 100)));
  auto longer = input;
  longer.kv_lengths_B = torch::tensor({193, 64}, torch::kInt);
  EXPECT_REFUSED(attend(longer), "kv_lengths: expected lengths from 0 to 192; found 193");
}

}  // namespace
}  // namespace prism
