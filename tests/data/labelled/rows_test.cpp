#include "prism/data/labelled/rows.h"

#include <gtest/gtest.h>

#include <fstream>

#include "prism/core/random.h"
#include "tests/core/message_of.h"
#include "tests/core/temporary_folder.h"

namespace prism {
namespace {

/// All rows of a file with this content, "line: value|value".
std::vector<std::string> rows_of(const std::string& text, const std::string& format) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "rows") << text;
  const auto reader = open_rows((folder.path() / "rows").string(), format);
  std::vector<std::string> rows;
  while (const auto row = reader->next()) {
    std::string line = std::to_string(row->line) + ": ";
    for (const auto& [name, value] : row->fields)
      line += (name.empty() ? "" : name + "=") + value + (&value == &row->fields.back().second ? "" : "|");
    rows.push_back(line);
  }
  return rows;
}

using Rows = std::vector<std::string>;

TEST(CsvRows, AreReadAsInRfc4180) {
  EXPECT_EQ(rows_of("a,b\nc,d", "csv"), (Rows{"1: a|b", "2: c|d"}));
  EXPECT_EQ(rows_of("a,b\r\nc,d\r\n", "csv"), (Rows{"1: a|b", "2: c|d"}));
  EXPECT_EQ(rows_of("\"a\",\"b, \"\"c\"\"\"\n", "csv"), (Rows{"1: a|b, \"c\""}));
  EXPECT_EQ(rows_of(" a , b \n", "csv"), (Rows{"1:  a | b "})) << "spaces belong to the values";
  EXPECT_EQ(rows_of("a,\n,b\n", "csv"), (Rows{"1: a|", "2: |b"}));
  EXPECT_EQ(rows_of("", "csv"), Rows());
}

TEST(CsvRows, BeginAtTheirFirstLine) {
  EXPECT_EQ(rows_of("\n\n1,\"two\nlines\"\n\n2,x\n", "csv"), (Rows{"3: 1|two\nlines", "6: 2|x"}));
  EXPECT_EQ(rows_of("\"two\nlines\",1\n2,x\n", "csv"), (Rows{"1: two\nlines|1", "3: 2|x"}));
  EXPECT_EQ(rows_of("1,a\r2,b\r", "csv"), (Rows{"1: 1|a", "1: 2|b"})) << "one line of two rows";
  EXPECT_EQ(rows_of("\xEF\xBB\xBF"
                    "1,a\n",
                    "csv"),
            (Rows{"1: 1|a"}))
      << "without the byte-order mark";
}

TEST(CsvRows, LongerThanABufferStayWhole) {
  const std::string value(200'000, 'x');
  EXPECT_EQ(rows_of("1,\"" + value + "\n" + value + "\"\n2,b\n", "csv"),
            (Rows{"1: 1|" + value + "\n" + value, "3: 2|b"}));
}

TEST(CsvRows, ThatAreDamagedAreNamed) {
  EXPECT_REFUSED(rows_of("a,b\nc\n", "csv"), "line 2: expected 2 values, as in the first row; found 1");
  EXPECT_REFUSED(rows_of("a,b\nc,d,e\n", "csv"), "found 3");
  EXPECT_REFUSED(rows_of("a,b\nc,\"d\ne,f\n", "csv"), "line 2: expected a closing quote");
  EXPECT_REFUSED(rows_of("a,b\nc,d\"e\n", "csv"), "line 2: expected quotes around the whole value");
  EXPECT_REFUSED(rows_of("a,b\nc,\"d\"e\n", "csv"), "line 2: expected quotes around the whole value");
  EXPECT_REFUSED(rows_of("a,b\nc,\xFF\n", "csv"), "line 2: expected UTF-8");
}

TEST(JsonRows, HaveNamedFields) {
  EXPECT_EQ(rows_of("{\"b\": 1, \"a\": \"x\"}\n\n{\"a\": null, \"b\": [1]}", "jsonl"),
            (Rows{"1: b=1|a=x", "3: a=|b=[1]"}));
  EXPECT_EQ(rows_of("{\"a\": 2.0, \"b\": 0.25, \"c\": -1e300}", "jsonl"), (Rows{"1: a=2|b=0.25|c=-1e+300"}));
  EXPECT_REFUSED(rows_of("{\"a\": 1}\n[1]\n", "jsonl"), "line 2: expected a JSON object; found array");
  EXPECT_REFUSED(rows_of("{\"a\": \n", "jsonl"), "line 1");
}

TEST(LabelledRows, HaveAKnownFormat) {
  EXPECT_REFUSED(open_rows("rows.txt", "auto"), "found rows.txt");
  EXPECT_REFUSED(open_rows("rows.csv", "xml"), "found \"xml\"");
  EXPECT_REFUSED(open_rows("-", "auto"), "give --format");
  const TemporaryFolder folder;
  EXPECT_THROW(open_rows((folder.path() / "none.csv").string(), "auto"), InputError);
}

TEST(LabelledRows, AreRefusedOrReadWhateverTheirBytes) {
  Random random(1);
  const std::string pieces[] = {"\"", ",",  "\n",       "\r",   "a",     "1", "{", "}",
                                ":",  "\\", "\xC3\xA9", "\xFF", "\"a\"", "[", "]"};
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (uint64_t j = random.below(30); j > 0; --j) text += pieces[random.below(std::size(pieces))];
    for (const char* format : {"csv", "jsonl"}) {
      const auto sentence = message_of([&] { rows_of(text, format); });
      EXPECT_TRUE(sentence.empty() || has_way_out(sentence)) << sentence;
    }
  }
}

}  // namespace
}  // namespace prism
