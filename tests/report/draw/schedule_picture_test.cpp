#include "prism/report/draw/schedule_picture.h"

#include <gtest/gtest.h>

namespace prism {
namespace {

TEST(ScheduleSvg, DrawsABoxForEachHeadAsWideAsTheHead) {
  const std::string svg = schedule_svg({{2, 2, 128}, {8, 8, 32}}, "<prism>");
  size_t boxes = 0, first = 0;
  for (size_t at = svg.find("<rect"); at != std::string::npos; at = svg.find("<rect", at + 1)) ++boxes;
  for (size_t at = svg.find("class=\"first\""); at != std::string::npos; at = svg.find("class=\"first\"", at + 1))
    ++first;
  EXPECT_EQ(boxes, 10U);
  EXPECT_EQ(first, 2U);
  EXPECT_NE(svg.find("aria-label=\"Heads of &lt;prism&gt;. layer 0: 2 × 128; layer 1: 8 × 32.\""), std::string::npos)
      << svg;
  // The second head of the first layer starts in the middle, that of the second layer at an eighth.
  EXPECT_NE(svg.find("class=\"head\" x=\"141.00\""), std::string::npos) << svg;
  EXPECT_NE(svg.find("class=\"head\" x=\"60.75\""), std::string::npos);
}

}  // namespace
}  // namespace prism
