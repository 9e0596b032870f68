// Axes that fit the data.
#include "prism/report/draw/plot_parts.h"

#include <gtest/gtest.h>

#include <cmath>

namespace prism {
namespace {

Extent extent_of(double low, double high) {
  Extent extent;
  extent.add(low);
  extent.add(high);
  return extent;
}

TEST(AxisOver, HoldsTheExtentWithAMargin) {
  const auto axis = axis_over("nats", extent_of(2, 4));
  EXPECT_DOUBLE_EQ(axis.low, 1.92);
  EXPECT_DOUBLE_EQ(axis.high, 4.08);
}

TEST(AxisOver, HasALengthForOneValueAndForNone) {
  const auto one = axis_over("%", extent_of(99.2, 99.2));
  EXPECT_GT(one.high - one.low, 0.1) << "short numbers";
  EXPECT_LT(one.high - one.low, 1);
  const auto none = axis_over("%", {});
  EXPECT_LT(none.low, 0);
  EXPECT_GT(none.high, 1);
}

TEST(LogarithmicAxis, NamesPowersOfTenAndMoreWhereItIsShort) {
  const auto numbers = [](double least, double most) {
    std::vector<double> found;
    for (const auto& [position, number] :
         logarithmic_axis("ms", extent_of(std::log10(least), std::log10(most))).ticks) {
      EXPECT_NEAR(position, std::log10(number), 1e-12);
      found.push_back(number);
    }
    return found;
  };
  EXPECT_EQ(numbers(0.02, 3000), (std::vector<double>{0.1, 1, 10, 100, 1000}));
  EXPECT_EQ(numbers(3, 60), (std::vector<double>{5, 10, 20, 50}));
  for (double value = 1; value < 10; value *= 1.01) EXPECT_GE(numbers(value, value).size(), 1u) << value;
}

}  // namespace
}  // namespace prism
