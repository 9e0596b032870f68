#include "prism/kernels/euclidean_norm.h"

#include <gtest/gtest.h>

#include <cmath>

namespace prism {
namespace {

double exact(const torch::Tensor& values) {
  return values.to(torch::kDouble).norm().item<double>();
}

TEST(EuclideanNorm, OfManyValuesIsAsExactAsOfFew) {
  torch::manual_seed(1);
  for (const int64_t count : {0, 1, 1023, 16 * 1024, 16 * 1024 + 1, 100 * 1024 + 7, 5'000'000}) {
    const auto values = torch::randn({count});
    EXPECT_NEAR(euclidean_norm(values).item<double>(), exact(values), 1e-6 * exact(values)) << count;
  }
}

TEST(EuclideanNorm, TakesEveryTypeAndLayout) {
  const auto values = torch::randn({300, 200}, torch::kDouble);
  EXPECT_NEAR(euclidean_norm(values).item<double>(), exact(values), 1e-14 * exact(values));
  const auto half = values.to(torch::kBFloat16);
  EXPECT_NEAR(euclidean_norm(half).item<double>(), exact(half), 1e-6 * exact(half));
  const auto columns = values.to(torch::kFloat).t().slice(0, 3, 150);
  EXPECT_NEAR(euclidean_norm(columns).item<double>(), exact(columns), 1e-6 * exact(columns));
  EXPECT_EQ(euclidean_norm(values).scalar_type(), torch::kDouble);
  const auto weight = torch::ones({2, 2}, torch::requires_grad());
  EXPECT_FALSE(euclidean_norm(weight).requires_grad());
}

TEST(EuclideanNorm, ShowsWhatIsNotFinite) {
  auto values = torch::ones({20'000});
  values[19'999] = INFINITY;
  EXPECT_TRUE(std::isinf(euclidean_norm(values).item<double>()));
  values[5] = NAN;
  EXPECT_TRUE(std::isnan(euclidean_norm(values).item<double>()));
}

}  // namespace
}  // namespace prism
