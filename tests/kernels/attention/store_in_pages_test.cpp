#include "prism/kernels/attention/store_in_pages.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <limits>

namespace prism {
namespace {

TEST(StoreInPages, WritesTheRowsOfEveryTypeAndNothingElse) {
  torch::manual_seed(1);
  const auto page_N = torch::tensor({4, 0, 4, 2}), place_N = torch::tensor({7, 0, 3, 5});
  for (const auto type : {torch::kBFloat16, torch::kFloat, torch::kDouble}) {
    const auto pages_PGSD = torch::randn({5, 3, 8, 16}).to(type), rows_NF = torch::randn({4, 9 * 16}).to(type);
    const auto rows_NGD = rows_NF.view({4, 9, 16}).narrow(1, 4, 3);  // heads amid others, as in a fused projection
    auto expected_PGSD = pages_PGSD.clone();
    expected_PGSD.transpose(1, 2).index_put_({page_N, place_N}, rows_NGD);
    store_in_pages(pages_PGSD, rows_NGD, 0, {page_N, place_N});
    EXPECT_TRUE(torch::equal(pages_PGSD, expected_PGSD)) << type;
  }
}

TEST(StoreInPages, WritesLongPromptsWithAnyNumberOfThreads) {
  const int before = at::get_num_threads();
  const auto rows_NGD = torch::randn({3000, 2, 24}), at_N = torch::randperm(3000);
  const auto page_N = at_N.div(128, "floor"), place_N = at_N.remainder(128);
  for (const int threads : {1, 3}) {
    at::set_num_threads(threads);
    const auto pages_PGSD = torch::zeros({24, 2, 128, 24});
    store_in_pages(pages_PGSD, rows_NGD, 0, {page_N, place_N});
    EXPECT_TRUE(torch::equal(pages_PGSD.transpose(1, 2).index({page_N, place_N}), rows_NGD)) << threads;
  }
  at::set_num_threads(before);
}

TEST(StoreInPages, WritesThePagesOfAHeadSideBySide) {
  const auto rows_NGD = torch::randn({4, 3, 16}), page_N = torch::tensor({4, 0, 4, 2}),
             place_N = torch::tensor({7, 0, 3, 5});
  const auto pages_PGSD = torch::zeros({3, 5, 8, 16}).transpose(0, 1);
  store_in_pages(pages_PGSD, rows_NGD, 0, {page_N, place_N});
  EXPECT_TRUE(torch::equal(pages_PGSD.transpose(1, 2).index({page_N, place_N}), rows_NGD));
  EXPECT_EQ(pages_PGSD.ne(0).sum().item<int64_t>(), rows_NGD.numel());
}

TEST(StoreInPages, RoundsToInt8WithAScaleForEachRow) {
  torch::manual_seed(2);
  const auto page_N = torch::tensor({4, 0, 4, 2}), place_N = torch::tensor({7, 0, 3, 5});
  for (const auto type : {torch::kBFloat16, torch::kFloat, torch::kHalf}) {
    const auto rows_NGD = torch::randn({4, 9, 20}).to(type).narrow(1, 4, 3);
    rows_NGD[1].zero_();
    const auto pages_PGSD = torch::full({3, 5, 8, 20}, 99, torch::kChar).transpose(0, 1),
               scales_PGS = torch::full({3, 5, 8}, 7, torch::kFloat).transpose(0, 1);
    store_in_int8_pages(pages_PGSD, scales_PGS, rows_NGD, 0, {page_N, place_N});
    const auto codes_NGD = pages_PGSD.transpose(1, 2).index({page_N, place_N});
    const auto scales_NG = scales_PGS.transpose(1, 2).index({page_N, place_N});
    EXPECT_TRUE(torch::equal(scales_NG, rows_NGD.to(torch::kFloat).abs().amax(-1) / 127)) << type;
    const auto error = (codes_NGD.to(torch::kFloat) * scales_NG.unsqueeze(-1) - rows_NGD.to(torch::kFloat)).abs();
    EXPECT_TRUE((error <= 0.5001 * scales_NG.unsqueeze(-1)).all().item<bool>()) << type;
    EXPECT_EQ(pages_PGSD.eq(99).sum().item<int64_t>() + codes_NGD.ne(99).sum().item<int64_t>(), pages_PGSD.numel());
    EXPECT_EQ(scales_PGS.eq(7).sum().item<int64_t>() + scales_NG.numel(), scales_PGS.numel());
  }
}

TEST(StoreInPages, KeepsANanInTheScaleOfItsRow) {
  const auto rows_NGD = torch::ones({2, 1, 8});
  rows_NGD[1][0][3] = std::numeric_limits<float>::quiet_NaN();
  const auto pages_PGSD = torch::zeros({1, 1, 2, 8}, torch::kChar), scales_PGS = torch::zeros({1, 1, 2});
  store_in_int8_pages(pages_PGSD, scales_PGS, rows_NGD, 0, {torch::zeros({2}, torch::kLong), torch::arange(2)});
  EXPECT_TRUE(torch::equal(scales_PGS.isnan().flatten(), torch::tensor({false, true})));
  EXPECT_TRUE(pages_PGSD[0][0][0].eq(127).all().item<bool>());
}

}  // namespace
}  // namespace prism
