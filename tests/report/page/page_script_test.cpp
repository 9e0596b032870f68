#include "prism/report/page/page_script.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>

#include "prism/core/fields.h"
#include "prism/core/files.h"
#include "tests/core/temporary_folder.h"
#include "tests/report/made_plots.h"

namespace prism {
namespace {

/// The first word of a command's output.
std::string first_word(const std::string& command) {
  std::FILE* pipe = ::popen(command.c_str(), "r");
  char word[256] = "";
  if (!pipe || std::fscanf(pipe, "%255s", word) != 1) word[0] = 0;
  if (pipe) ::pclose(pipe);
  return word;
}

std::string base64_of_hex(const std::string& hex) {
  constexpr const char* kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  unsigned bits = 0;
  int count = 0;
  for (const char c : hex) {
    bits = bits << 4 | static_cast<unsigned>(std::stoi(std::string(1, c), nullptr, 16));
    count += 4;
    if (count < 6) continue;
    count -= 6;
    text += kDigits[bits >> count & 63U];
  }
  if (count > 0) text += kDigits[bits << (6 - count) & 63U];
  return text + std::string((4 - text.size() % 4) % 4, '=');
}

TEST(PageScript, IsWhatItsHashSaysSoThatBrowsersRunIt) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "script.js";
  write_file(path, kPageScript);
  const std::string hex = first_word("sha256sum '" + path.string() + "'");
  ASSERT_EQ(hex.size(), 64U) << "sha256sum is part of coreutils";
  EXPECT_EQ(kPageScriptHash, "sha256-" + base64_of_hex(hex));
}

TEST(PageScript, EndsInItsElementAndMakesNoMarkupOfTexts) {
  const std::string script = kPageScript;
  for (const char* part :
       {"</", "<!--", "innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "Function("}) {
    EXPECT_EQ(script.find(part), std::string::npos) << part;
  }
}

TEST(PlotData, HoldsThePixelsSeriesAndTextsOfPoints) {
  Plot plot = small_plot();
  plot.series[1].points[0].text = "1,000,000 tokens: 4.0000";
  const Json data = Json::parse(plot_data({"a", "b"}, {plot}));
  EXPECT_EQ(data.at("series").dump(), R"([["a",0],["b",1]])");
  const Json& points = data.at("plots").at("demo");
  ASSERT_EQ(points.size(), 1U) << "what has no text cannot be pointed at";
  const Pixel place = pixel_of(plot, 1e6, 4.0);
  EXPECT_NEAR(points[0][0].get<double>(), place.x, 0.051);
  EXPECT_NEAR(points[0][1].get<double>(), place.y, 0.051);
  EXPECT_EQ(points[0][2], 1);
  EXPECT_EQ(points[0][3], "1,000,000 tokens: 4.0000");
}

TEST(PlotData, LeavesOutWhatTheScaleLeavesOut) {
  Plot plot = small_plot();
  plot.series = {
      {PlotStyle::kPoints, 0, {{.x = 1e6, .y = 9.0, .text = "above"}, {.x = NAN, .y = 4.0, .text = "nowhere"}}}};
  EXPECT_TRUE(Json::parse(plot_data({"a"}, {plot})).at("plots").at("demo").empty());
}

TEST(PlotData, KeepsHostileNamesInsideItsElement) {
  const std::string evil = "</script><script>alert(1)</script><!-- &amp; \"'\\ \xff\x01\u2028";
  const std::string text = plot_data({evil}, {});
  for (const char c : {'<', '>', '&'}) EXPECT_EQ(text.find(c), std::string::npos) << text;
  EXPECT_EQ(Json::parse(text).at("series")[0][0],
            "</script><script>alert(1)</script><!-- &amp; \"'\\ \uFFFD\uFFFD\u2028");
}

}  // namespace
}  // namespace prism
