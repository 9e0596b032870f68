#include "prism/report/tables/table.h"

#include <gtest/gtest.h>

#include "prism/core/error.h"

namespace prism {
namespace {

Table small_table() {
  Table table{"A caption", {{"run"}, {"val loss", true}}, {}, {"A note."}};
  table.rows.push_back({{"uniform"}, {"4.4012", "0.0031"}});
  table.rows.push_back({{"x"}, {"-10.5"}});
  return table;
}

TEST(TableText, AlignsNumbersRightWithRoomForTheSpread) {
  EXPECT_EQ(table_text(small_table()),
            "run             val loss\n"
            "uniform  4.4012 ± 0.0031\n"
            "x         -10.5\n"
            "A note.\n");
}

TEST(TableText, KeepsHostileNamesOnTheirLine) {
  Table table{"", {{"run"}}, {}, {}};
  table.rows.push_back({{"a\n\x1b[2Jb"}});
  EXPECT_EQ(table_text(table), "run\na \uFFFD[2Jb\n");
}

TEST(TablesText, HasCaptionsAndBlankLinesOnlyIfThereAreSeveral) {
  const Table table = small_table();
  const std::string text = table_text(table);
  EXPECT_EQ(tables_text({}), "");
  EXPECT_EQ(tables_text({table}), text);
  EXPECT_EQ(tables_text({table, table}), "A caption\n" + text + "\nA caption\n" + text);
}

TEST(TableMarkdown, IsAPipeTableWithAlignment) {
  EXPECT_EQ(table_markdown(small_table()),
            "**A caption**\n\n"
            "| run | val loss |\n"
            "|---|---:|\n"
            "| uniform | 4.4012 ± 0.0031 |\n"
            "| x | -10.5 |\n"
            "\nA note.\n");
}

TEST(TableMarkdown, MarksTheBestAndEscapesCells) {
  Table table{"c", {{"a"}, {"b", true}}, {}, {}};
  table.rows.push_back({{"x|y<z"}, {"1.0", "", true}});
  EXPECT_NE(table_markdown(table).find("| x\\|y&lt;z | **1.0** |"), std::string::npos);
}

TEST(TableHtml, HasScopesCaptionAndMinusSigns) {
  const std::string html = table_html(small_table());
  EXPECT_NE(html.find("<caption>A caption</caption>"), std::string::npos);
  EXPECT_NE(html.find("<th scope=\"col\">run</th><th scope=\"col\" class=\"n\">val loss</th>"), std::string::npos);
  EXPECT_NE(html.find("<th scope=\"row\" class=\"short\"><bdi>uniform</bdi></th>"), std::string::npos);
  EXPECT_NE(html.find("<td class=\"n\">−10.5<span class=\"spread\" style=\"min-width:9ch\"></span></td>"),
            std::string::npos);
  EXPECT_NE(html.find("4.4012<span class=\"spread\" style=\"min-width:9ch\"> ± 0.0031</span>"), std::string::npos);
  EXPECT_NE(html.find("<p class=\"note\">A note.</p>"), std::string::npos);
}

TEST(TableHtml, EscapesEveryText) {
  const std::string evil = "<img src=x onerror=alert(1)>\"'";
  Table table{evil, {{evil}, {evil, true}}, {}, {evil}};
  table.rows.push_back({{evil}, {evil, evil, true, 3}});
  const std::string html = table_html(table);
  EXPECT_EQ(html.find("<img"), std::string::npos);
  EXPECT_EQ(html.find("x onerror=alert(1)>"), std::string::npos);
}

TEST(Table, RefusesARowOfAnotherLength) {
  Table table{"c", {{"a"}, {"b"}}, {}, {}};
  table.rows.push_back({{"x"}});
  EXPECT_THROW(table_text(table), InternalError);
  EXPECT_THROW(table_html(table), InternalError);
  EXPECT_THROW(table_markdown(table), InternalError);
}

}  // namespace
}  // namespace prism
