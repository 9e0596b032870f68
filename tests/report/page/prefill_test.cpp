// Tables and plots of sparse-prompt records.
#include "prism/report/page/prefill.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "prism/report/page/markdown.h"
#include "prism/report/page/page.h"
#include "tests/core/message_of.h"
#include "tests/core/temporary_folder.h"

namespace prism {
namespace {

std::string speed_line(const std::string& selector, const std::string& settings, double density, double recall) {
  return fmt::format(
      "{{\"bench\":\"prefill\",\"selector\":\"{}\",\"settings\":{},\"mix\":\"structured\",\"dtype\":\"bfloat16\","
      "\"tokens\":"
      "8192,\"heads\":8,\"kv_heads\":2,\"head_dim\":128,\"rounds\":3,\"density\":{},\"recall\":{},\"recall_p5\":0.9,"
      "\"oracle_density\":0.05,\"select_ms\":1.5,\"attend_ms\":20.0,\"dense_ms\":86.0,\"sdpa_ms\":0.0,\"speedup\":4.0,"
      "\"extra_bytes\":3145728}}\n",
      selector, settings, density, recall);
}

std::string loss_line(const std::string& selector, const std::string& settings, double density, double perplexity) {
  return fmt::format(
      "{{\"task\":\"perplexity\",\"model\":\"runs/long\",\"token_perplexity\":{},\"tokens\":50000,\"prefill\":"
      "{{\"selector\":\"{}\",\"settings\":{},\"chunk\":0,\"density\":{},\"select_ms\":1,\"attend_ms\":2,\"layers\":[]}}"
      "}}\n",
      perplexity, selector, settings, density);
}

/// A line of prism eval with more fields.
std::string with(std::string loss, const std::string& fields) {
  return loss.insert(loss.find("\"token_perplexity\""), fields);
}

class PrefillRecordsTest : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.path() / name) << text;
    return folder_.path() / name;
  }
  PrefillRecords read(const std::string& text) const { return read_prefill_records({write("records.jsonl", text)}); }

  TemporaryFolder folder_;
};

TEST_F(PrefillRecordsTest, NameSettingsOnlyWhereRecordsDifferInThem) {
  const auto records = read(speed_line("spectral", R"({"p":0.9,"sink":1})", 0.3, 0.97) + "\n" +
                            speed_line("spectral", R"({"p":0.95,"sink":1})", 0.4, 0.99) +
                            speed_line("random", R"({"share":0.5})", 0.5, 0.5));
  ASSERT_EQ(records.speeds.size(), 3u);
  EXPECT_EQ(records.speeds[0].method.text, "spectral, p 0.9");
  EXPECT_EQ(records.speeds[1].method.text, "spectral, p 0.95");
  EXPECT_EQ(records.speeds[2].method.text, "random");
  const auto tables = prefill_tables(records);
  ASSERT_EQ(tables.size(), 1u) << "neither perplexities nor heads";
  const Table& table = tables[0];
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(table.rows[0][1].text, "structured, 8 on 2, 128 wide, bfloat16");
  EXPECT_EQ(table.rows[0][3].text, "0.300");
  EXPECT_EQ(table.rows[0][10].text, "–") << "LibTorch's was not measured";
}

TEST_F(PrefillRecordsTest, HaveNoTimesIfNoneWereTaken) {
  std::string line = speed_line("random", R"({"share":0.5})", 0.5, 0.5);
  for (const std::string time : {"1.5", "20.0", "86.0", "4.0"})
    line.replace(line.find(":" + time + ","), time.size() + 1, ":0.0");
  const Table table = prefill_tables(read(line))[0];
  EXPECT_EQ(table.rows[0][3].text, "0.500");
  for (const size_t column : {6, 8, 9, 11}) EXPECT_EQ(table.rows[0][column].text, "–");
}

TEST_F(PrefillRecordsTest, AreOneSeriesWhereOnlyNumbersDiffer) {
  const auto records =
      read(speed_line("spectral", R"({"p":0.9,"block_size":128,"calibration":"off"})", 0.3, 0.97) +
           speed_line("spectral", R"({"p":0.8,"block_size":128,"calibration":"off"})", 0.2, 0.9) +
           speed_line("spectral", R"({"p":0.8,"block_size":64,"calibration":"off"})", 0.2, 0.9) +
           speed_line("spectral", R"({"p":0.8,"block_size":64,"calibration":"all_blocks"})", 0.2, 0.9));
  EXPECT_EQ(records.series().size(), 3u);
  EXPECT_EQ(records.speeds[1].method.series, records.speeds[0].method.series);
  const auto plots = prefill_plots(records);
  ASSERT_EQ(plots.size(), 1u);
  EXPECT_EQ(plots[0].plot.series.size(), 3u);
}

TEST_F(PrefillRecordsTest, AreLinesOverTheLengthOfPromptsWhereASelectorHasSeveral) {
  const auto line = [](const std::string& selector, double p, const std::string& tokens, const std::string& choosing) {
    std::string text = speed_line(selector, fmt::format(R"({{"p":{}}})", p), 0.3, 0);
    text.replace(text.find("8192"), 4, tokens);
    return text.replace(text.find(":1.5,") + 1, 3, choosing);
  };
  std::string untimed = line("spectral", 0.8, "4096", "0");
  for (const std::string time : {"20.0", "86.0"}) untimed.replace(untimed.find(":" + time), time.size() + 1, ":0.0");
  const auto records = read(line("sink_window", 0, "8192", "0") + line("sink_window", 0, "16384", "0") +
                            line("spectral", 0.9, "16384", "5") + line("spectral", 0.9, "8192", "80") +
                            line("spectral", 0.8, "8192", "1") + untimed);
  const auto plots = prefill_plots(records);
  ASSERT_EQ(plots.size(), 3u);
  const auto& times = plots[0];
  EXPECT_EQ(times.plot.id, "prefill-times");
  EXPECT_EQ(times.labels, (std::vector<std::string>{"sink_window", "spectral, p 0.9", "spectral, p 0.8",
                                                    "dense attention", "LibTorch's dense attention"}));
  ASSERT_EQ(times.plot.series.size(), 3u) << "neither one length alone nor LibTorch's, which was not measured";
  const auto& spectral = times.plot.series[1];
  EXPECT_EQ(spectral.series, 1);
  EXPECT_EQ(times.plot.series[2].series, 3);
  EXPECT_DOUBLE_EQ(spectral.points[0].x, 13) << "log2 of 8,192";
  EXPECT_DOUBLE_EQ(spectral.points[0].y, 2) << "log10 of 80 ms and 20 ms";
  EXPECT_EQ(spectral.points[1].text, "spectral, p 0.9: 16,384 tokens, ms for choosing and attention 25.00");
  EXPECT_EQ(plots[1].plot.id, "prefill-choosing");
  ASSERT_EQ(plots[1].plot.series.size(), 1u) << "zero has no logarithm";
  EXPECT_EQ(plots[1].plot.series[0].series, 1) << "the colour it has elsewhere";
  EXPECT_EQ(plots[2].plot.id, "prefill-memory");
  EXPECT_DOUBLE_EQ(plots[2].plot.series[0].points[0].y, std::log10(3)) << "MiB";
  for (const auto& [plot, labels] : {plots[0], plots[1]}) {
    ASSERT_EQ(plot.x.ticks.size(), 2u) << "lengths without a line are left out";
    EXPECT_EQ(plot.x.ticks[1].number, 16);
  }
}

TEST_F(PrefillRecordsTest, ShowEachHeadWhereItIsRecorded) {
  std::string line = speed_line("spectral", R"({"p":0.9})", 0.3, 0.97);
  line.insert(line.rfind('}'),
              R"(,"by_head":[{"density":0.25,"recall":0.5,"oracle_density":0.1},{"density":1,"recall":0,)"
              R"("oracle_density":0}])");
  const auto tables = prefill_tables(read(line + speed_line("random", R"({"share":0.5})", 0.5, 0.5)));
  ASSERT_EQ(tables.size(), 2u);
  ASSERT_EQ(tables[1].rows.size(), 1u);
  EXPECT_EQ(tables[1].columns.back().header, "head 1");
  EXPECT_EQ(tables[1].rows[0][3].text, "0.250 0.500");
  EXPECT_EQ(tables[1].rows[0][4].text, "1.000") << "its recall was not measured";
}

TEST_F(PrefillRecordsTest, GivePerplexityBesideDense) {
  const auto records = read_prefill_records({write("a.jsonl", loss_line("dense", "{}", 1, 20)),
                                             write("b.jsonl", loss_line("spectral", R"({"p":0.9})", 0.5, 20.2) +
                                                                  loss_line("spectral", R"({"p":0.5})", 0.2, 24))});
  const Table table = prefill_tables(records).at(0);
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(table.rows[1].back().text, "+1.00");
  EXPECT_EQ(table.rows[2].back().text, "+20.00");
  EXPECT_EQ(table.rows[0].back().text, "0.00");
  const auto plots = prefill_plots(records);
  ASSERT_EQ(plots.size(), 1u);
  ASSERT_EQ(plots[0].plot.series.size(), 1u);
  EXPECT_EQ(plots[0].plot.series[0].points.front().x, 0.2) << "from the lowest density on";
  EXPECT_EQ(records.series(), (std::vector<std::string>{"dense", "spectral"}));
}

TEST_F(PrefillRecordsTest, OfOtherModelsTextsAndWindowsAreNotCompared) {
  const std::string one = R"("files":["a.txt"],"window":4096,"stride":4096,"dtype":"bfloat16",)";
  const std::string other = R"("files":["b.txt"],"window":4096,"stride":2048,"dtype":"bfloat16",)";
  const auto records =
      read(with(loss_line("dense", "{}", 1, 20), one) + with(loss_line("spectral", R"({"p":0.9})", 0.5, 22), one) +
           with(loss_line("spectral", R"({"p":0.5})", 0.2, 25), one) +
           with(loss_line("spectral", R"({"p":0.9})", 0.5, 220), other) +
           with(loss_line("spectral", R"({"p":0.5})", 0.2, 250), other));
  const Table table = prefill_tables(records).at(0);
  EXPECT_EQ(table.rows[0][1].text, "runs/long on a.txt, 50,000 tokens, windows of 4,096, bfloat16");
  EXPECT_EQ(table.rows[3][1].text, "runs/long on b.txt, 50,000 tokens, windows of 4,096 every 2,048, bfloat16");
  EXPECT_EQ(table.rows[1].back().text, "+10.00");
  EXPECT_EQ(table.rows[3].back().text, "–") << "no dense attention of that text";
  const auto plots = prefill_plots(records);
  ASSERT_EQ(plots.size(), 2u);
  EXPECT_EQ(plots[1].plot.series.size(), 1u);
  EXPECT_EQ(plots[1].plot.series[0].points.front().y, 250);
}

TEST_F(PrefillRecordsTest, AreLinesOfTheirOwnWhereMoreThanTheShareDiffers) {
  const auto records = read(speed_line("spectral", R"({"p":0.9,"high_dims":64,"preset":"prism"})", 0.3, 0.97) +
                            speed_line("spectral", R"({"p":0.8,"high_dims":64,"preset":"changed"})", 0.2, 0.9) +
                            speed_line("spectral", R"({"p":0.8,"high_dims":32,"preset":"changed"})", 0.2, 0.8));
  EXPECT_EQ(records.series(), (std::vector<std::string>{"spectral, high_dims 64", "spectral, high_dims 32"}));
  EXPECT_EQ(records.speeds[0].method.text, "spectral, p 0.9, high_dims 64")
      << "not what the preset of a version was called";
}

TEST_F(PrefillRecordsTest, FromBeforeDenseLastRowsAreOfOneLineWithThoseWithoutThem) {
  const auto records = read(speed_line("mean_pooling", R"({"p":0.9})", 0.3, 0.97) +
                            speed_line("mean_pooling", R"({"p":0.8,"last_dense":0})", 0.2, 0.9) +
                            speed_line("mean_pooling", R"({"p":0.8,"last_dense":2})", 0.25, 0.92) +
                            speed_line("flash_prefill", R"({"alpha":0.3,"last_dense":2})", 0.25, 0.92));
  EXPECT_EQ(records.series(),
            (std::vector<std::string>{"mean_pooling, last_dense 0", "mean_pooling, last_dense 2", "flash_prefill"}));
}

TEST_F(PrefillRecordsTest, AreOfOneLineWithTheShareOfOneBandAloneAndNotWithThoseOfBoth) {
  const auto line = [](double p, double high, double low, double density) {
    return speed_line(
        "spectral",
        fmt::format(R"({{"p":{},"p_high":{},"p_low":{},"low_dims":{}}})", p, high, low, density > 0.5 ? 16 : 0),
        density, 0.9);
  };
  const auto records = read(line(0.9, 0, 0, 0.4) + line(0.9, 1e-6, 0, 0.3) + line(0.8, 1e-6, 0, 0.2) +
                            line(0, 0.5, 0.6, 0.1) + line(0.9, 0, 0, 0.6));
  EXPECT_EQ(records.series(),
            (std::vector<std::string>{"spectral", "spectral, p_high 1e-06", "spectral, low_dims 16"}));
  EXPECT_EQ(records.speeds[0].method.text, "spectral, p 0.9") << "zeros are left to the selector";
  EXPECT_EQ(records.speeds[3].method.series, "spectral");
}

TEST_F(PrefillRecordsTest, OfManySettingsNameThoseThatAreNotTheCommonest) {
  const auto line = [](int64_t a, int64_t b, int64_t c, int64_t d) {
    return speed_line("spectral", fmt::format(R"({{"p":0.{},"a":{},"b":{},"c":{},"d":{}}})", 5 + a + b, a, b, c, d),
                      0.3, 0.9);
  };
  const auto records = read(line(0, 0, 0, 0) + line(1, 0, 0, 0) + line(0, 1, 0, 0) + line(0, 0, 1, 1));
  EXPECT_EQ(records.speeds[0].method.text, "spectral, p 0.5");
  EXPECT_EQ(records.speeds[1].method.text, "spectral, p 0.6, a 1");
  EXPECT_EQ(records.series(),
            (std::vector<std::string>{"spectral", "spectral, a 1", "spectral, b 1", "spectral, c 1, d 1"}));
}

TEST_F(PrefillRecordsTest, NameAZeroWhereAnotherValueIsTheCommonest) {
  const auto line = [](int64_t dims, int64_t a, int64_t b, int64_t c) {
    return speed_line("spectral", fmt::format(R"({{"high_dims":{},"a":{},"b":{},"c":{}}})", dims, a, b, c), 0.3, 0.9);
  };
  const auto records = read(line(32, 0, 0, 0) + line(0, 0, 0, 0) + line(32, 1, 0, 0) + line(32, 0, 1, 1));
  EXPECT_EQ(records.series(),
            (std::vector<std::string>{"spectral", "spectral, high_dims 0", "spectral, a 1", "spectral, b 1, c 1"}));
}

TEST_F(PrefillRecordsTest, MakeAPageAndADocumentOfTheirOwn) {
  ReportOptions options;
  options.prefill = read(loss_line("<b>", R"({"p":0.9})", 0.5, 20.2) + loss_line("<b>", R"({"p":0.5})", 0.2, 24));
  std::vector<std::string> problems;
  const std::string page = records_html(options, &problems);
  EXPECT_NE(page.find("&lt;b&gt;, p 0.9"), std::string::npos);
  EXPECT_EQ(page.find("<b>"), std::string::npos);
  options.figures = "figures";
  const std::string document = records_markdown(options);
  EXPECT_NE(document.find("figures/prefill-perplexity.svg"), std::string::npos);
}

TEST_F(PrefillRecordsTest, DrawPerplexityAboveThatOfDenseAttentionOnALogarithmicAxis) {
  const std::string sparse = loss_line("spectral", R"({"p":0.9})", 0.5, 20.2) +
                             loss_line("spectral", R"({"p":0.7})", 0.3, 22) +
                             loss_line("spectral", R"({"p":0.99})", 0.9, 19.9);
  const auto alone = prefill_plots(read(sparse)).at(0).plot;
  EXPECT_EQ(alone.y.label, "perplexity");
  EXPECT_EQ(alone.series.at(0).points.size(), 3u);
  const auto plot = prefill_plots(read(loss_line("dense", "{}", 1, 20) + sparse)).at(0).plot;
  EXPECT_EQ(plot.y.label, "perplexity above dense attention's, %");
  ASSERT_EQ(plot.series.size(), 1u) << "dense attention itself is not above";
  ASSERT_EQ(plot.series[0].points.size(), 2u) << "a perplexity below dense attention's has no logarithm";
  EXPECT_NEAR(plot.series[0].points[0].y, 1, 1e-9) << "10%";
  EXPECT_NEAR(plot.series[0].points[1].y, 0, 1e-9) << "1%";
  EXPECT_NE(plot.series[0].points[1].text.find("+1.00"), std::string::npos) << plot.series[0].points[1].text;
}

TEST_F(PrefillRecordsTest, CountTheAnswersAboutDistantFacts) {
  const auto records =
      read(with(loss_line("dense", "{}", 1, 20), R"("window":100,"answers":[[50,0],[51,1],[70,1],[99,1]],)") +
           with(loss_line("random", R"({"share":0.5})", 0.5, 22),
                R"("window":100,"answers":[[50,1],[51,0],[70,1],[99,0]],)") +
           with(loss_line("random", R"({"share":0.2})", 0.2, 23), R"("window":100,"answers":[[50,1]],)") +
           with(loss_line("random", R"({"share":0.1})", 0.1, 24), R"("window":100,"answers":[[60,0]],)"));
  const Table table = prefill_tables(records).at(0);
  EXPECT_EQ(table.columns.back().header, "distant answers %");
  EXPECT_EQ(table.rows[0].back().text, "100.0");
  EXPECT_EQ(table.rows[1].back().text, "33.3");
  EXPECT_EQ(table.rows[2].back().text, "–") << "none was asked";
  EXPECT_EQ(table.rows[3].back().text, "0.0");
  const auto plots = prefill_plots(records);
  ASSERT_EQ(plots.size(), 2u);
  EXPECT_EQ(plots[1].plot.id, "prefill-answers");
  ASSERT_EQ(plots[1].plot.series.size(), 2u);
  EXPECT_EQ(plots[1].plot.series[1].points.size(), 2u) << "only those with questions";
  for (const std::string wrong : {"[1]", "[[1]]", "[[3000,7]]", "[[3000,true]]", "[[3000,0.5]]", "[[-1,1]]"})
    EXPECT_REFUSED(read(with(loss_line("dense", "{}", 1, 20), "\"answers\":" + wrong + ",")), "answers");
}

/// The line with another value of a field.
std::string changed(std::string line, const std::string& field, const std::string& value) {
  const size_t at = line.find("\"" + field + "\":") + field.size() + 3;
  return line.replace(at, line.find_first_of(",}", at) - at, value);
}

struct WrongField {
  std::string name, value;
};

TEST_F(PrefillRecordsTest, WithAFieldThatCannotBeAreRefusedByItsName) {
  const std::string speed = speed_line("random", R"({"share":0.5})", 0.5, 0.5);
  const std::string loss = loss_line("random", R"({"share":0.5})", 0.5, 22);
  for (const auto& wrong : {WrongField{"tokens", "0"},
                            {"tokens", "1e30"},
                            {"tokens", "1.5"},
                            {"density", "7"},
                            {"density", "null"},
                            {"recall", "-0.1"},
                            {"select_ms", "1e308"},
                            {"sdpa_ms", "null"},
                            {"extra_bytes", "-1"},
                            {"mix", "1"},
                            {"heads", "0"}})
    EXPECT_REFUSED(read(speed + changed(speed, wrong.name, wrong.value)), "as " + wrong.name);
  for (const auto& wrong :
       {WrongField{"tokens", "-4"}, {"density", "-1"}, {"token_perplexity", "-5"}, {"chunk", "true"}, {"model", "{}"}})
    EXPECT_REFUSED(read(changed(loss, wrong.name, wrong.value)), "as " + wrong.name);
  EXPECT_REFUSED(read(with(loss, R"("window":0,)")), "as window");
  for (const std::string wrong : {"\"abc\"", "3", "{\"a\":1}", "null", "[1]"}) {
    EXPECT_REFUSED(read(with(loss, "\"files\":" + wrong + ",")), "as files");
    EXPECT_REFUSED(read(with(loss, "\"answers\":" + wrong + ",")), "as answers");
    std::string heads = speed;
    heads.insert(heads.find("\"extra_bytes\""), "\"by_head\":" + wrong + ",");
    EXPECT_REFUSED(read(heads), "as by_head");
  }
}

TEST_F(PrefillRecordsTest, OfOtherLengthsScalingsOfPositionsAndWeightsAreNotCompared) {
  const std::string yarn = R"("context":16384,"rope_scaling":"yarn","weights":"file",)";
  const std::string wide = R"("context":16384,"rope_scaling":"yarn","weights":"float32",)";
  const auto records =
      read(loss_line("dense", "{}", 1, 20) + with(loss_line("dense", "{}", 1, 22), yarn) +
           with(loss_line("random", "{}", 0.5, 33), yarn) + changed(loss_line("random", "{}", 0.5, 30), "tokens", "6") +
           with(loss_line("random", "{}", 0.5, 33), wide));
  const Table table = prefill_tables(records).at(0);
  EXPECT_EQ(table.rows[1][1].text, "runs/long, 50,000 tokens, yarn to 16,384, weights as in the file");
  EXPECT_EQ(table.rows[1].back().text, "0.00");
  EXPECT_EQ(table.rows[2].back().text, "+50.00");
  EXPECT_EQ(table.rows[3].back().text, "–") << "no dense attention over six tokens";
  EXPECT_EQ(table.rows[4].back().text, "–") << table.rows[4][1].text;
}

TEST_F(PrefillRecordsTest, HaveNoDifferenceToAnInfinitePerplexity) {
  const auto records =
      read(changed(loss_line("dense", "{}", 1, 20), "token_perplexity", "null") + loss_line("random", "{}", 0.5, 33));
  EXPECT_EQ(prefill_tables(records).at(0).rows[1].back().text, "–");
}

TEST_F(PrefillRecordsTest, TellMemoryOfZeroFromMemoryThatWasNotMeasured) {
  const std::string line = speed_line("sink_window", "{}", 0.5, 0.5);
  const Table table = prefill_tables(read(changed(line, "extra_bytes", "0") + changed(line, "select_ms", "0"))).at(0);
  EXPECT_EQ(table.rows[0][7].text, "0.00");
  EXPECT_EQ(table.rows[1][7].text, "–");
}

TEST_F(PrefillRecordsTest, OfOtherKindsAreRefused) {
  EXPECT_REFUSED(read_prefill_records({folder_.path() / "absent"}), "absent");
  EXPECT_REFUSED(read("{}"), "records.jsonl, line 1");
  EXPECT_REFUSED(read("\n[1]"), "line 2");
  EXPECT_REFUSED(read(speed_line("dense", "{}", 1, 1) + R"({"bench":"prefill","selector":1})"), "line 2");
  EXPECT_REFUSED(read("{"), "line 1");
  EXPECT_REFUSED(read("\n\n"), "found none");
  EXPECT_REFUSED(read_prefill_records({folder_.path()}), "found a folder");
}

}  // namespace
}  // namespace prism
