#include "prism/report/draw/series.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace prism {
namespace {

TEST(SeriesStyle, TellsTwentySeriesApart) {
  std::vector<std::string> seen;
  for (int i = 0; i < 20; ++i) {
    const SeriesStyle style = series_style(i);
    EXPECT_LT(style.colour, kSeriesColours);
    const std::string look = fmt::format("{} {}", style.colour, style.gnuplot_point);
    EXPECT_EQ(std::count(seen.begin(), seen.end(), look), 0) << i << ": points without a line look like earlier ones";
    seen.push_back(look);
  }
}

}  // namespace
}  // namespace prism
