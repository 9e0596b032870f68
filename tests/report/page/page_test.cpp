#include "prism/report/page/page.h"

#include <gtest/gtest.h>

#include <set>

#include "prism/core/fields.h"
#include "prism/report/page/markdown.h"
#include "prism/report/page/page_script.h"
#include "tests/report/has.h"
#include "tests/report/made_runs.h"
#include "tests/report/run_folder.h"

namespace prism {
namespace {

const std::string kEvil = R"(</script><img src=x onerror=alert(1)>\"'&lt; | `x` */</style><svg/onload=alert(2)>)";

bool is_void(const std::string& name) {
  static const std::set<std::string> names = {"meta", "br"};
  return names.contains(name);
}

/// Describes an error in the nesting of the tags; empty if there is none. Text has no raw "<", since it is escaped.
std::string tag_fault(const std::string& html) {
  std::vector<std::string> open;
  for (size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1)) {
    const size_t end = html.find('>', at);
    if (end == std::string::npos) return "a tag without end";
    const bool closes = html[at + 1] == '/';
    const size_t start = at + (closes ? 2 : 1), stop = html.find_first_of(" \t\n/>", start);
    const std::string name = html.substr(start, stop - start);
    if (name == "!DOCTYPE") continue;
    if (name.empty() || !std::isalpha(static_cast<unsigned char>(name[0])))
      return "\"<\" that starts no tag: " + html.substr(at, 40);
    if (closes) {
      if (open.empty() || open.back() != name)
        return "</" + name + "> closes " + (open.empty() ? "nothing" : open.back());
      open.pop_back();
    } else if (!is_void(name) && html[end - 1] != '/') {
      open.push_back(name);
      if (name == "script") at = html.find("</script", end) - 1;  // its content is text, even "<"
    }
  }
  return open.empty() ? "" : "<" + open.back() + "> stays open";
}

struct Page {
  std::string html;
  std::vector<std::string> problems;
};

Page render(const Comparison& comparison, const ReportOptions& options = {}) {
  Page page;
  page.html = report_html(comparison, options, &page.problems);
  return page;
}

std::string json_text(const std::string& text) {
  return Json(text).dump();
}

/// A run in which every text is hostile.
Comparison hostile_runs(const RunFolder& folder) {
  std::vector<Run> runs;
  for (const char* place : {"a", "b"}) {
    const std::string evil = json_text(kEvil + place);
    const std::string text =
        "{\"kind\":\"run\",\"name\":" + evil + ",\"schedule\":" + evil + ",\"cpu\":" + evil + ",\"dtype\":" + evil +
        ",\"seed\":1,\"layers\":[{\"heads\":2,\"head_dim\":4}]}\n{\"kind\":\"train\",\"tokens\":10,\"loss\":3}\n"
        "{\"kind\":\"eval\",\"tokens\":10,\"val_loss\":3}\n{\"kind\":\"sample\",\"tokens\":10,\"prompt\":" +
        json_text(kEvil) + ",\"text\":" + evil + "}\n{\"kind\":\"end\",\"tokens\":10}\n";
    const std::string recipe = "{" + json_text("<field>" + kEvil) + ":" + evil + "}";
    runs.push_back(read_run(folder.write(std::string(place) + "<i>folder", text, recipe)));
  }
  return compare_runs(std::move(runs));
}

Comparison two_runs(const RunFolder& folder) {
  const std::string sample = R"({"kind":"sample","tokens":3000,"prompt":"Once","text":" upon a time"})"
                             "\n";
  return compare_runs({read_run(folder.write("a", run_lines({.more = sample}), R"({"seed":1,"rate":1})")),
                       read_run(folder.write("b", run_lines({.name = "prism", .losses = {5, 4, 3.5}, .more = sample}),
                                             R"({"seed":1,"rate":2})"))});
}

TEST(TagFault, FindsWhatIsWrong) {
  EXPECT_EQ(tag_fault("<!DOCTYPE html><p>a<br>b<path d='x'/></p>"), "");
  EXPECT_NE(tag_fault("<p><b></p></b>"), "");
  EXPECT_NE(tag_fault("<p>"), "");
  EXPECT_NE(tag_fault("</p>"), "");
  EXPECT_NE(tag_fault("<p>1 < 2</p>"), "");
  EXPECT_EQ(tag_fault("<script>1 < 2</script>"), "");
}

TEST(ReportHtml, KeepsANumberAndItsDeviationOnOneLine) {
  const Page page = render(compare_groups({{"base", {4.0, 4.5, 5.0}}, {"low", {3.9, 4.41, 4.89}}}));
  EXPECT_TRUE(has(page.html, "4.4000&nbsp;±&nbsp;0.4951. Its difference to base, −0.1000&nbsp;±&nbsp;0.0100, has"));
}

TEST(ReportHtml, HasEverySectionAndIsWellFormed) {
  const RunFolder folder;
  const Page page = render(two_runs(folder));
  EXPECT_EQ(tag_fault(page.html), "");
  for (const char* heading : {"Results", "Loss against tokens", "Head schedules", "Samples",
                              "Recipe fields that differ", "Machine", "Runs"}) {
    EXPECT_EQ(count(page.html, fmt::format("<h2>{}</h2>", heading)), 1U) << heading;
  }
  EXPECT_TRUE(has(page.html, "<title>Comparison of uniform and prism</title>"));
  EXPECT_EQ(count(page.html, "<span class=\"prompt\">Once</span> upon a time</p>"), 2U);
  EXPECT_EQ(count(page.html, "<svg class=\"schedule\""), 1U) << "equal schedules share a picture";
  EXPECT_TRUE(has(page.html, "<b>uniform and prism</b>"));
  EXPECT_TRUE(has(page.html, "−0.5000"));
}

TEST(ReportHtml, DrawsThePlotsOfTwoRunsInline) {
  if (std::system("command -v gnuplot >/dev/null 2>&1") != 0) GTEST_SKIP() << "gnuplot is not installed";
  const RunFolder folder;
  const Page page = render(two_runs(folder));
  EXPECT_TRUE(page.problems.empty());
  EXPECT_EQ(count(page.html, "<svg class=\"plot\""), 5U) << "training, validation, difference, forest, front";
  std::set<std::string> ids;
  for (size_t at = page.html.find(" id="); at != std::string::npos; at = page.html.find(" id=", at + 1)) {
    const size_t end = page.html.find(page.html[at + 4], at + 5);
    EXPECT_TRUE(ids.insert(page.html.substr(at + 5, end - at - 5)).second) << page.html.substr(at, 40);
  }
  EXPECT_EQ(tag_fault(page.html), "");
}

TEST(ReportHtml, RefersToNothingOutside) {
  const RunFolder folder;
  const std::string html = render(two_runs(folder)).html;
  for (const char* reference : {"http:", "https:", "//", " src=", "url(", "@import", "<link", "<a "}) {
    EXPECT_FALSE(has(html, reference)) << reference;
  }
  EXPECT_TRUE(has(
      html, fmt::format("content=\"default-src 'none'; style-src 'unsafe-inline'; script-src '{}';", kPageScriptHash)));
}

TEST(ReportHtml, IsReadableOnPhonesInTheDarkAndOnPaper) {
  const RunFolder folder;
  const std::string html = render(two_runs(folder)).html;
  EXPECT_TRUE(has(html, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"));
  EXPECT_TRUE(has(html, "@media (prefers-color-scheme: dark)"));
  EXPECT_TRUE(has(html, "@media print"));
  EXPECT_EQ(count(html, "<table>"), count(html, "<div class=\"scroll\"")) << "every table scrolls on its own";
  EXPECT_TRUE(has(html, "<html lang=\"en\">"));
}

TEST(ReportHtml, ShowsHostileTextsAsTexts) {
  const RunFolder folder;
  const std::string html = render(hostile_runs(folder), {.title = "T " + kEvil, .gnuplot = "/nowhere/<b>gnuplot"}).html;
  EXPECT_EQ(tag_fault(html), "");
  for (const char* tag : {"<img", "<svg/onload", "<i>folder", "<b>gnuplot", "<field>"})
    EXPECT_FALSE(has(html, tag)) << tag;
  EXPECT_EQ(count(html, "</style>"), 1U);
  EXPECT_EQ(count(html, "<script"), 2U) << "the data and the page's own";
  EXPECT_EQ(count(html, "</script"), 2U);
  EXPECT_TRUE(has(html, "&lt;img src=x onerror=alert(1)&gt;"));
}

TEST(ReportHtml, SaysInPlaceWhyPlotsAreMissing) {
  const RunFolder folder;
  const Page page = render(two_runs(folder), {.title = "", .gnuplot = "/nowhere/gnuplot"});
  EXPECT_EQ(page.problems.size(), 1U) << "said once, though five plots are missing";
  EXPECT_EQ(count(page.html, "<p class=\"missing\">[plot] expected gnuplot"), 5U);
  EXPECT_EQ(count(page.html, "<svg class=\"plot\""), 0U);
  EXPECT_TRUE(has(page.html, "<svg class=\"schedule\"")) << "drawn without gnuplot";
  EXPECT_EQ(tag_fault(page.html), "");
}

TEST(ReportHtml, ShowsARunThatHasHardlyBegun) {
  const RunFolder folder;
  const Page page = render(compare_runs({read_run(folder.write("a", run_lines({.losses = {}})))}));
  EXPECT_TRUE(page.problems.empty()) << page.problems[0];
  EXPECT_TRUE(has(page.html, "No training loss has been recorded yet."));
  EXPECT_TRUE(has(page.html, "No validation loss has been recorded yet."));
  EXPECT_TRUE(has(page.html, "has not finished: 0 tokens of 3,000 so far, no evaluation yet."));
  EXPECT_FALSE(has(page.html, "<h2>Samples</h2>"));
  EXPECT_EQ(tag_fault(page.html), "");
}

TEST(ReportHtml, SurvivesAbsurdNumbers) {
  const RunFolder folder;
  const std::string absurd =
      R"({"kind":"run","name":"absurd","total_tokens":1,"parameters":-8e18,"peak_gflops":1e308,"seed":-5})"
      "\n"
      R"({"kind":"train","tokens":-7,"seconds":-1e300,"loss":-1e308,"tokens_per_s":1e308,"peak_share":-1e308})"
      "\n"
      R"({"kind":"eval","tokens":8e18,"seconds":1e300,"val_loss":1e308})"
      "\n"
      R"({"kind":"train","tokens":8.5e18,"loss":1e308})"
      "\n";
  const Page page =
      render(compare_runs({read_run(folder.write("a", absurd)), read_run(folder.write("b", run_lines({})))}));
  EXPECT_EQ(tag_fault(page.html), "");
  EXPECT_TRUE(has(page.html, "<bdi>99% done</bdi>"));
}

TEST(ReportHtml, SaysWhenEqualNamesStandApart) {
  const RunFolder folder;
  const Comparison comparison =
      compare_runs({read_run(folder.write("a", run_lines({}))), read_run(folder.write("b", run_lines({})))});
  const std::string html = render(comparison).html;
  EXPECT_TRUE(has(html, "Several runs are called &quot;uniform&quot;"));
  EXPECT_TRUE(has(html, "uniform (" + (folder.path("b")).string() + ")"));
}

TEST(ReportHtml, ShowsTheLastSampleOfEachPromptAndTemperature) {
  const RunFolder folder;
  const std::string samples =
      "{\"kind\":\"sample\",\"tokens\":1000,\"prompt\":\"P\",\"text\":\" early\"}\n"
      "{\"kind\":\"sample\",\"tokens\":3000,\"prompt\":\"P\",\"text\":\" late\\nline\"}\n"
      "{\"kind\":\"sample\",\"tokens\":3000,\"prompt\":\"P\",\"temperature\":1.5,\"text\":\" warm\"}\n"
      "{\"kind\":\"sample\",\"tokens\":3000,\"prompt\":\"P\",\"temperature\":0.5,\"text\":\" cool\"}\n";
  const std::string html = render(compare_runs({read_run(folder.write("a", run_lines({.more = samples})))})).html;
  EXPECT_FALSE(has(html, "early"));
  EXPECT_TRUE(has(html, "<span class=\"prompt\">P</span> late\nline</p>"));
  EXPECT_TRUE(has(html, ", after 3.00k tokens</header>"));
  const size_t cool = html.find("</span> cool</p>"), warm = html.find("</span> warm</p>");
  EXPECT_LT(cool, warm) << "by temperature";
  EXPECT_TRUE(has(html, ", after 3.00k tokens, temperature 1.5</header>"));
}

TEST(ReportHtml, NamesTheSeriesOfEveryLegendEntryAndPlot) {
  if (std::system("command -v gnuplot >/dev/null 2>&1") != 0) GTEST_SKIP() << "gnuplot is not installed";
  const std::string html = render(measured_runs()).html;
  EXPECT_EQ(count(html, "<li data-series=\"1\">"), 2U) << "a legend for each section with plots";
  for (const char* plot : {"valid", "difference", "forest", "distance", "distance-difference"}) {
    const size_t start = html.find(fmt::format("<svg class=\"plot\" data-plot=\"{}\"", plot));
    ASSERT_NE(start, std::string::npos) << plot;
    EXPECT_TRUE(has(html.substr(start, html.find("</svg>", start) - start), "data-series=\"1\"")) << plot;
    EXPECT_TRUE(has(html.substr(html.find("id=\"plot-data\"")), fmt::format("\"{}\":[[", plot))) << plot;
  }
  EXPECT_EQ(tag_fault(html), "");
}

TEST(ReportHtml, ShowsItsScriptNoPlotThatItHasNoPointsOf) {
  if (std::system("command -v gnuplot >/dev/null 2>&1") != 0) GTEST_SKIP() << "gnuplot is not installed";
  ReportOptions options;
  options.analysis.add(Json::parse(R"({"analysis":"norms","model":"m","reading":"t","layer":0,"residual_rms":1.5,
                                       "dead_units":[]})"),
                       "here");
  std::vector<std::string> problems;
  const std::string html = report_html(measured_runs(), options, &problems);
  EXPECT_TRUE(has(html, "Residual stream before each layer of m"));
  const std::string data = html.substr(html.find("id=\"plot-data\""));
  const std::string hook = "data-plot=\"";
  EXPECT_GE(count(html, hook), 5U);
  for (size_t at = html.find(hook); at < html.find("<script"); at = html.find(hook, at + 1)) {
    const size_t name = at + hook.size();
    const std::string plot = html.substr(name, html.find('"', name) - name);
    EXPECT_TRUE(has(data, fmt::format("\"{}\":[", plot))) << plot;
  }
}

TEST(ReportHtml, NumbersItsFiguresInOrder) {
  const std::string html = render(measured_runs()).html;
  size_t last = 0;
  for (int number = 1; number <= 6; ++number) {
    const size_t at = html.find(fmt::format("<b>Figure {}. ", number));
    ASSERT_NE(at, std::string::npos) << number;
    EXPECT_GT(at, last) << number;
    last = at;
  }
}

TEST(ReportHtml, CarriesASweepOfTenArmsAndFiveSeeds) {
  std::vector<std::pair<std::string, std::vector<double>>> arms;
  for (int arm = 0; arm < 10; ++arm) {
    const double loss = 4.0 + 0.01 * arm;
    arms.push_back({fmt::format("an arm with a long name that says what differs, number {}", arm),
                    {loss, loss + 0.1, loss + 0.21, loss + 0.3, loss + 0.41}});
  }
  const Page page = render(compare_groups(arms));
  EXPECT_EQ(tag_fault(page.html), "");
  EXPECT_TRUE(has(page.html, "<title>Comparison of 10 models</title>"));
  EXPECT_EQ(count(page.html, "<text class=\"row\""), page.problems.empty() ? 9U : 0U);
  EXPECT_LT(page.html.size(), 1'000'000U);
}

TEST(ReportMarkdown, HasTheNumbersOfEveryFigure) {
  const std::string text = report_markdown(measured_runs(), {});
  for (const char* part : {"-0.2171 to +0.0371", "**Mean attention distance of each layer, in tokens**", "+5.5 ± 0.7",
                           "**Cost to reach the baseline's final loss**", "**Loss on whole texts**"}) {
    EXPECT_TRUE(has(text, part)) << part << "\n" << text;
  }
}

TEST(ReportFigures, StandAloneWithTheirNamesAndColours) {
  const auto files = report_figures(measured_runs(), {});
  std::vector<std::string> names;
  for (const auto& [name, svg] : files) {
    SCOPED_TRACE(name);
    names.push_back(name);
    EXPECT_EQ(tag_fault(svg), "");
    EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 480 "));
    EXPECT_EQ(count(svg, "http"), 1U) << "nothing outside";
    for (const char* part : {"prefers-color-scheme: dark", "--series-1: ", ">prism</text>"})
      EXPECT_TRUE(has(svg, part));
    for (size_t at = svg.find("var(--"); at != std::string::npos; at = svg.find("var(--", at + 1)) {
      const std::string variable = svg.substr(at + 4, svg.find(')', at) - at - 4);
      EXPECT_TRUE(has(svg, variable + ": ")) << variable << " is used and not defined";
    }
  }
  EXPECT_EQ(names, (std::vector<std::string>{"valid.svg", "difference.svg", "forest.svg", "distance.svg",
                                             "distance-difference.svg"}));
}

TEST(ReportFigures, ShowHostileNamesAsTexts) {
  const RunFolder folder;
  const auto files = report_figures(hostile_runs(folder), {});
  ASSERT_FALSE(files.empty());
  for (const auto& [name, svg] : files) {
    SCOPED_TRACE(name);
    EXPECT_EQ(tag_fault(svg), "");
    EXPECT_EQ(count(svg, "</style>"), 1U);
    for (const char* tag : {"<img", "<svg/onload", "<script"}) EXPECT_FALSE(has(svg, tag)) << tag;
  }
}

TEST(ReportFigures, SayWhyTheyCannotBeDrawn) {
  EXPECT_THROW(report_figures(measured_runs(), {.title = "", .gnuplot = "/nowhere/gnuplot"}), FailedError);
}

TEST(ReportMarkdown, ShowsTheFiguresOfItsFolder) {
  const std::string text = report_markdown(measured_runs(), {.title = "", .figures = "my figures"});
  EXPECT_TRUE(has(text, "![Validation loss against trained tokens of uniform and prism](<my figures/valid.svg>)\n"));
  EXPECT_EQ(count(text, ".svg>)"), 5U);
  EXPECT_EQ(count(report_markdown(measured_runs(), {}), ".svg"), 0U);
}

TEST(ReportMarkdown, HasTheTablesAndTheSamples) {
  const RunFolder folder;
  const std::string text = report_markdown(two_runs(folder), {.title = "A *title*", .gnuplot = ""});
  EXPECT_TRUE(text.starts_with("# A \\*title\\*\n\nprism has the lowest validation loss after 3,000 tokens: 3.5000"))
      << text;
  EXPECT_TRUE(has(text, "| prism | 2x2 | 3.5000 | 33.12 | -0.5000 | 8,421,376 | 3,000 | 1,234 | 1 min 10 s |\n"));
  EXPECT_TRUE(has(text, "| 1 | 4 × 4, 2 kv | 4 × 4, 2 kv |\n"));
  EXPECT_TRUE(has(text, "```text\nOnce upon a time\n```\n"));
  EXPECT_TRUE(has(text, "| rate | 1 | 2 |\n"));
}

TEST(ReportMarkdown, LetsNoTextBreakTheTables) {
  const RunFolder folder;
  const std::string text = report_markdown(hostile_runs(folder), {});
  const size_t start = text.find("**Results**"), end = text.find("\n\n", text.find("|---"));
  for (size_t line = text.find("\n|", start); line < end; line = text.find("\n|", line + 1)) {
    const std::string row = text.substr(line + 1, text.find('\n', line + 1) - line - 1);
    EXPECT_EQ(count(row, "|") - count(row, "\\|"), 10U) << row;
  }
  EXPECT_FALSE(has(text.substr(0, end), "<img"));
}

}  // namespace
}  // namespace prism
