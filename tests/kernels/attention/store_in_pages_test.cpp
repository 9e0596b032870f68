#include "prism/kernels/attention/store_in_pages.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

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
    store_in_pages(pages_PGSD, rows_NGD, page_N, place_N);
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
    store_in_pages(pages_PGSD, rows_NGD, page_N, place_N);
    EXPECT_TRUE(torch::equal(pages_PGSD.transpose(1, 2).index({page_N, place_N}), rows_NGD)) << threads;
  }
  at::set_num_threads(before);
}

}  // namespace
}  // namespace prism
