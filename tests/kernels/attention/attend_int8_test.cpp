// Keys and values in pages of int8, each row with a scale.
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

std::vector<AttendCase> int8_cases() {
  std::vector<AttendCase> list;
  for (const auto type : {torch::kFloat, torch::kBFloat16}) {
    list.push_back({.queries = 1, .keys = 128, .head_dim = 64, .type = type});
    list.push_back({.queries = 1, .keys = 700, .heads = 9, .groups = 3, .head_dim = 64, .lengths = true, .type = type});
    list.push_back(
        {.queries = 1, .keys = 130, .head_dim = 80, .lengths = true, .kept = true, .weights = true, .type = type});
    list.push_back({.queries = 2, .keys = 257, .head_dim = 128, .value_dim = 40, .window = 70, .type = type});
    list.push_back({.queries = 5, .keys = 66, .heads = 8, .groups = 1, .head_dim = 24, .value_dim = 136, .type = type});
    list.push_back({.queries = 4, .keys = 140, .head_dim = 16, .documents = true, .kept = true, .type = type});
    list.push_back({.queries = 3, .keys = 1, .head_dim = 8, .causality = Causality::full, .type = type});
    list.push_back({.queries = 70, .keys = 321, .head_dim = 64, .type = type});
    list.push_back({.queries = 50, .keys = 129, .head_dim = 40, .lengths = true, .documents = true, .type = type});
    list.push_back({.queries = 64, .keys = 385, .head_dim = 40, .value_dim = 128, .window = 90, .type = type});
    list.push_back({.queries = 30, .keys = 150, .head_dim = 24, .lengths = true, .blocks = true, .type = type});
  }
  return list;
}

class AttendInt8 : public testing::TestWithParam<AttendCase> {};
INSTANTIATE_TEST_SUITE_P(Shapes, AttendInt8, testing::ValuesIn(int8_cases()));

/// The error beside the truth of exact int8 values. Decoding with bytes rounds q to 2^-16 of its largest magnitude, and
/// the weights of 64 keys, times the scales of their values, to 2^-17 of the largest of them. A prompt's keys and
/// values are rounded to q's type: each changes by a share of `rounding`, which |q| |k| scale bounds in scores.
double int8_tolerance(const AttentionInput& rounded, bool prompt) {
  const auto& q = rounded.q_BTHD;
  const auto norms = [](const torch::Tensor& x) { return x.to(torch::kDouble).norm(2, -1).max().item<double>(); };
  const double head_dim = static_cast<double>(q.size(3)), scale = 1 / std::sqrt(head_dim);
  const double largest_v = rounded.kv.v_BGSE.abs().max().item<double>();
  const double rounding = q.scalar_type() == torch::kBFloat16 ? 0x1p-8 : 0x1p-24;
  const double q_error = 0x1p-16 * q.abs().max().item<double>() * std::sqrt(head_dim);
  const double score =
      prompt ? rounding * norms(q) * norms(rounded.kv.k_BGSD) * scale : q_error * norms(rounded.kv.k_BGSD) * scale;
  return tolerance(rounded) + (2 * score + 64 * 0x1p-17 + (prompt ? rounding : 0)) * largest_v;
}

TEST_P(AttendInt8, EqualsTheDefinitionOnTheValuesThatPagesHold) {
  const auto input = make_input(GetParam());
  const auto rounded = rounded_to_int8(input, torch::kFloat);
  const auto truth = loop_over_everything(rounded);
  for (const int64_t page : {12, 64, 128}) {
    attend_in_every_way(in_int8_pages(input, page),
                        [&](const AttentionOutput& output, AttentionBackend backend, std::optional<bool> decodes) {
                          EXPECT_EQ(output.out_BTHE.scalar_type(), GetParam().type);
                          EXPECT_LE(difference(output, truth), int8_tolerance(rounded, decodes != true || page == 12))
                              << backend_name(backend) << " page " << page << " decodes " << decodes.value_or(false);
                          EXPECT_TRUE(torch::equal(output.lse_BHT.isinf(), truth.lse_BHT.isinf()));
                        });
  }
}

TEST_P(AttendInt8, ExceedsTheToleranceWhenOneKeyIsDropped) {
  const AttendCase& c = GetParam();
  if (c.keys < 2) GTEST_SKIP() << "needs a second key";
  if (c.type != torch::kFloat) GTEST_SKIP() << "one of many keys changes less than bfloat16 rounds";
  const auto input = make_input(c);
  const auto rounded = rounded_to_int8(input, torch::kFloat);
  auto paged = in_int8_pages(input, 64);
  if (!flash_backend_serves(paged)) GTEST_SKIP() << "no flash kernels for this processor";
  // The key at the first query's position, which some query sees with any mask.
  const int64_t position = (c.lengths ? c.keys - 1 : c.keys) - c.queries;
  const auto page = paged.kv.page_table_BN[0][position / 64].item<int>();
  paged.kv.k_BGSD[page].select(1, position % 64).fill_(-100);
  paged.kv.k_scales_PGS[page].select(1, position % 64).fill_(1);
  for (const bool decodes : {true, false}) {
    paged.decodes = decodes;
    EXPECT_GT(difference(attend(paged, AttentionBackend::flash), loop_over_everything(rounded)),
              int8_tolerance(rounded, !decodes));
  }
}

TEST_P(AttendInt8, GivesAPromptTheBitsOfGatheredPages) {
  const auto input = make_input(GetParam());
  auto gathered = rounded_to_int8(input, GetParam().type), paged = in_int8_pages(input, 128);
  if (!flash_backend_serves(paged)) GTEST_SKIP() << "no flash kernels for this processor";
  gathered.decodes = paged.decodes = false;
  const auto found = attend(paged, AttentionBackend::flash), expected = attend(gathered, AttentionBackend::flash);
  EXPECT_TRUE(torch::equal(found.out_BTHE, expected.out_BTHE));
  EXPECT_TRUE(torch::equal(found.lse_BHT, expected.lse_BHT));
}

TEST(AttendInt8, DecodedRowsHaveTheSameBitsAloneAndInAnyBatch) {
  const std::vector<int64_t> lengths = {3, 64, 129, 701, 1300, 512};
  const auto batch = static_cast<int64_t>(lengths.size());
  for (const auto type : {torch::kFloat, torch::kBFloat16})
    for (const int64_t window : {0, 70}) {
      auto input = make_input(
          {.batch = batch, .queries = 3, .keys = 1300, .heads = 6, .head_dim = 40, .window = window, .type = type});
      input.kv_lengths_B = torch::tensor(lengths).to(torch::kInt);
      input.decodes = true;
      const auto one = in_int8_pages(input, 128, 1), other = in_int8_pages(input, 64, 2);
      if (!flash_backend_serves(one)) GTEST_SKIP() << "no flash kernels for this processor";
      const auto together = attend(one, AttentionBackend::flash), again = attend(other, AttentionBackend::flash);
      EXPECT_TRUE(torch::equal(together.out_BTHE, again.out_BTHE));
      for (int64_t b = 0; b < batch; ++b)
        for (int64_t t = 0; t < 3; ++t) {
          auto alone = one;
          alone.q_BTHD = input.q_BTHD.narrow(0, b, 1).narrow(1, t, 1);
          alone.kv.page_table_BN = one.kv.page_table_BN.narrow(0, b, 1);
          alone.kv_lengths_B = torch::tensor({lengths[static_cast<size_t>(b)] - 2 + t}).to(torch::kInt);
          const auto expected = attend(alone, AttentionBackend::flash);
          EXPECT_TRUE(torch::equal(together.out_BTHE[b][t], expected.out_BTHE[0][0])) << b << " " << t;
          EXPECT_TRUE(torch::equal(together.lse_BHT[b].select(1, t), expected.lse_BHT[0].select(1, 0))) << b;
        }
    }
}

TEST(AttendInt8, KeepsANanInTheRowsThatSeeIt) {
  const auto input = make_input({.batch = 1, .queries = 4, .keys = 300, .heads = 2, .head_dim = 16});
  const auto clean = in_int8_pages(input, 64);
  if (!flash_backend_serves(clean)) GTEST_SKIP() << "no flash kernels for this processor";
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  const auto truth = attend(clean, AttentionBackend::flash).out_BTHE;
  auto query = clean;
  query.q_BTHD = clean.q_BTHD.clone();
  query.q_BTHD[0][1][0][3] = nan;
  auto found = attend(query, AttentionBackend::flash).out_BTHE;
  EXPECT_TRUE(found[0][1][0].isnan().all().item<bool>());
  found[0][1][0] = truth[0][1][0];
  EXPECT_TRUE(torch::equal(found, truth));
  for (auto member : {&KeyValues::k_scales_PGS, &KeyValues::v_scales_PGS}) {
    auto scaled = clean;
    scaled.kv.*member = (clean.kv.*member).clone();
    // Only the last query sees position 299.
    (scaled.kv.*member)[clean.kv.page_table_BN[0][299 / 64].item<int>()].select(1, 299 % 64).fill_(nan);
    found = attend(scaled, AttentionBackend::flash).out_BTHE;
    EXPECT_TRUE(found[0][3].isnan().all().item<bool>());
    EXPECT_TRUE(torch::equal(found.narrow(1, 0, 3), truth.narrow(1, 0, 3)));
  }
}

TEST(AttendInt8, ServesHalfPrecisionAndZeros) {
  auto input = make_input({.batch = 1, .queries = 2, .keys = 70, .heads = 2, .head_dim = 16, .type = torch::kHalf});
  const auto rounded = rounded_to_int8(input, torch::kFloat);
  const auto out = attend(in_int8_pages(input, 64)).out_BTHE;
  EXPECT_EQ(out.scalar_type(), torch::kHalf);
  EXPECT_LE((out.to(torch::kDouble) - loop_over_everything(rounded).out_BTHE).abs().max().item<double>(), 4e-3);
  auto zeros = in_int8_pages(make_input({.batch = 1, .queries = 2, .keys = 70, .heads = 2, .head_dim = 16}), 64);
  zeros.kv.v_scales_PGS.zero_();
  zeros.kv.k_scales_PGS.zero_();
  EXPECT_TRUE(attend(zeros).out_BTHE.eq(0).all().item<bool>());
}

TEST(AttendInt8, NeedsAScaleForEachRowOfAPage) {
  const auto good = in_int8_pages(make_input({.queries = 2, .keys = 70, .head_dim = 16}), 64);
  auto none = good;
  none.kv.k_scales_PGS = none.kv.v_scales_PGS = torch::Tensor();
  EXPECT_REFUSED(attend(none), "or k and v of int8 with scales; found Float, Char and Char without scales");
  auto one = good;
  one.kv.v_scales_PGS = torch::Tensor();
  EXPECT_REFUSED(attend(one), "expected float32 scales [6, 2, 64] of k and v; found none");
  auto narrow = good;
  narrow.kv.k_scales_PGS = good.kv.k_scales_PGS.narrow(2, 0, 63);
  EXPECT_REFUSED(attend(narrow), "expected float32 scales [6, 2, 64] of k and v; found [6, 2, 63]");
  auto half = good;
  half.kv.k_scales_PGS = good.kv.k_scales_PGS.to(torch::kHalf);
  EXPECT_REFUSED(attend(half), "expected float32 scales");
  auto floats = good;
  floats.kv.k_BGSD = good.kv.k_BGSD.to(torch::kFloat);
  EXPECT_REFUSED(attend(floats), "found Float, Float and Char with scales");
  auto whole = good;
  whole.kv.page_table_BN = torch::Tensor();
  EXPECT_REFUSED(attend(whole), "expected keys for 2 sequences; found 6");
  whole.q_BTHD = torch::randn({6, 2, 4, 16});
  whole.kv_lengths_B = torch::Tensor();
  EXPECT_REFUSED(attend(whole), "expected int8 keys and values in pages; found no page table");
  auto transposed = good;
  transposed.kv.k_scales_PGS = good.kv.k_scales_PGS.transpose(1, 2).contiguous().transpose(1, 2);
  EXPECT_REFUSED(attend(transposed), "scales: expected a dense last axis");
}

}  // namespace
}  // namespace prism
