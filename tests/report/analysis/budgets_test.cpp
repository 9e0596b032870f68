#include "prism/report/analysis/budgets.h"

#include <gtest/gtest.h>

#include <exception>
#include <string>
#include <vector>

#include "tests/report/analysis/made_lines.h"

namespace prism {
namespace {

std::string budgets_line(const char* by, const char* group, int layer, double share) {
  return Json{{"analysis", "budgets"},
              {"model", "m"},
              {"reading", "t"},
              {"kind", "layer"},
              {"layer", layer},
              {"heads", 2},
              {"by", by},
              {"group", group},
              {"examples", 9},
              {"share", share},
              {"share_sd", 0.125},
              {"entropy", 0.5},
              {"kept_share", 0.5},
              {"entropy_sd", 0},
              {"head_kept", {1, 0.25}},
              {"head_probability", {0.75, 0.25}}}
      .dump();
}

const char* const kSavings =
    R"({"analysis":"budgets","model":"m","reading":"t","kind":"savings","texts":64,"batch":32,"tokens":20.5,"share":0.085,)"
    R"("kept_share":0.125,"with":{"parameters":110,"attention_flops":250,"model_flops":1000,"ms":0.5,"memory_bytes":100},)"
    R"("without":{"parameters":100,"attention_flops":1000,"model_flops":2000,"ms":1,"memory_bytes":0}})";
const char* const kBudgetText =
    R"({"analysis":"budgets","model":"m","reading":"\"a <b>\"","kind":"text","layer":1,"label":"neutral","share":0.5,)"
    R"("probability":[0.2,0.8],"kept":[1]})";
const char* const kBudgetMap =
    R"({"analysis":"budgets","model":"m","reading":"\"a <b>\"","kind":"map","layer":1,"head":1,"probability":0.8,)"
    R"("is_kept":true,"tokens":["a","b"],"weights":[[0.5,0.5],[0.25,0.75]]})";

TEST(BudgetLines, BecomeTablesPlotsAndPictures) {
  const auto records = records_of({budgets_line("all", "all", 0, 0.25), budgets_line("all", "all", 1, 0.75),
                                   budgets_line("class", "yes", 0, 0.5), budgets_line("class", "no", 0, 0.5), kSavings,
                                   kBudgetText, kBudgetMap});
  const auto tables = analysis_tables(records);
  ASSERT_EQ(tables.size(), 4u);
  EXPECT_EQ(tables[0].rows[1][2].text, "0.750");
  EXPECT_EQ(tables[0].rows[1][2].spread, "0.125");
  EXPECT_EQ(tables[1].rows[1][1].text, "no");
  EXPECT_EQ(tables[2].rows[0][1].text, "0.0850");
  EXPECT_EQ(tables[2].rows[0][3].text, "") << "s is no cost";
  EXPECT_EQ(tables[2].rows[1][3].text, "87.5") << "one of eight heads";
  EXPECT_EQ(tables[2].rows[2][3].text, "-10.0") << "budgets add parameters";
  EXPECT_EQ(tables[2].rows[3][3].text, "75.0");
  EXPECT_EQ(tables[2].rows[6][3].text, "–");
  EXPECT_EQ(tables[3].rows[0][2].text, "1");
  const auto plots = analysis_plots(records);
  ASSERT_EQ(plots.size(), 4u);
  EXPECT_EQ(plots[0].plot.id, "budgets-share-all");
  EXPECT_EQ(plots[3].plot.id, "budgets-entropy-class");
  EXPECT_EQ(plots[3].labels, (std::vector<std::string>{"yes", "no"}));
  const auto pictures = analysis_pictures(records);
  ASSERT_EQ(pictures.size(), 2u);
  EXPECT_EQ(pictures[0].map.rows, (std::vector<std::string>{"yes", "no"}));
  EXPECT_EQ(pictures[0].map.values[1], 0.25);
  EXPECT_EQ(pictures[1].name, "map-layer1-head1-computed");
  EXPECT_CONTAINS(pictures[1].title, "p 0.800, computed");
  EXPECT_EQ(pictures[1].map.values[1], 0.5) << "a token attends to those after it";
}

TEST(BudgetLines, ThatLackAFieldAreRefused) {
  AnalysisRecords records;
  for (const char* text : {kSavings, kBudgetText, kBudgetMap}) {
    const Json whole = Json::parse(text);
    for (const char* field : {"with", "share", "kept", "weights", "probability"}) {
      if (!whole.contains(field)) continue;
      Json line = whole;
      line.erase(field);
      EXPECT_THROW(records.add(line, "here"), std::exception) << field;
    }
  }
  Json layer = Json::parse(budgets_line("all", "all", 0, 0.25));
  layer["head_kept"].push_back(0.5);
  EXPECT_REFUSED(records.add(layer, "here"), "expected head_kept of 2 heads; found 3");
  for (const auto& [field, value, words] : {std::tuple{"heads", Json(-8), "expected at least one head; found -8"},
                                            {"by", Json("../evil"), "expected a division by"}}) {
    layer = Json::parse(budgets_line("all", "all", 0, 0.25));
    layer[field] = value;
    EXPECT_REFUSED(records.add(layer, "here"), words);
  }
  Json read = Json::parse(kBudgetText);
  read["kept"] = {99};
  EXPECT_REFUSED(records.add(read, "here"), "expected kept heads from 0 to 1; found 99");
  Json line = Json::parse(kSavings);
  line["kind"] = "other";
  EXPECT_REFUSED(records.add(line, "here"), "expected a line of kind layer, savings, text or map");
  EXPECT_TRUE(records.empty());
}

}  // namespace
}  // namespace prism
