// Tables and pictures of evaluated tasks.
#include "prism/report/evaluation/evaluation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numbers>
#include <string>
#include <vector>

#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "prism/core/files.h"
#include "prism/core/numbers/item_figure.h"
#include "prism/report/draw/number_text.h"
#include "tests/core/message_of.h"
#include "tests/core/temporary_folder.h"

namespace prism {
namespace {

/// A folder as prism eval --out writes it: one task with four items, and a group of two parts.
void write_results(const std::filesystem::path& folder, const std::string& selector, const std::vector<double>& scores,
                   int seed = 1) {
  std::filesystem::create_directories(folder);
  Json results = {
      {"results",
       {{"piqa", {{"alias", "piqa"}, {"sample_len", scores.size()}, {"acc,none", 0.5}, {"acc_stderr,none", 0.25}}},
        {"wikitext", {{"word_perplexity,none", 21.5}, {"word_perplexity_stderr,none", "N/A"}}},
        {"part_a", {{"sample_len", 2}, {"acc,none", 1.0}, {"acc_stderr,none", 0.0}}},
        {"part_b", {{"sample_len", 2}, {"acc,none", 0.0}, {"acc_stderr,none", 0.0}}},
        {"whole", {{"acc,none", 0.5}, {"acc_stderr,none", 0.0}}}}},
      {"group_subtasks", {{"whole", Json::array({"part_a", "part_b"})}}},
      {"higher_is_better",
       {{"piqa", {{"acc", true}}}, {"wikitext", {{"word_perplexity", false}}}, {"part_a", {{"acc", true}}}}},
      {"density", {{"piqa", selector == "dense" ? 1.0 : 0.25}, {"part_a", 1.0}}},
      {"config",
       {{"model", "models/small"},
        {"selector", selector},
        {"selector_settings", {{"p", 0.9}, {"block_size", 128}}},
        {"selector_changes", Json::array({"p=0.9"})}}}};
  if (selector != "dense") results["recall"]["piqa"] = 0.875;
  write_file(folder / "results_prism.json", results.dump());
  std::string rows;
  for (size_t i = 0; i < scores.size(); ++i)
    rows += Json{{"doc_id", i}, {"doc", {{"goal", i}}}, {"arguments", seed}, {"acc", scores[i]}}.dump() + "\n";
  write_file(folder / "samples_piqa_prism.jsonl", rows);
  const auto sample = [&](int doc, size_t i) {
    return Json{{"doc", doc}, {"arguments", 1}, {"acc", scores[i]}}.dump() + "\n";
  };
  write_file(folder / "samples_part_a_prism.jsonl", sample(1, 0) + sample(2, 1));
  write_file(folder / "samples_part_b_prism.jsonl", sample(3, 1) + sample(4, 0));
}

/// The cells of a task's first row; none if it has none.
std::vector<TableCell> row_of(const Table& table, const std::string& task) {
  const auto found = std::ranges::find(table.rows, task, [](const auto& row) { return row[0].text; });
  return found == table.rows.end() ? std::vector<TableCell>() : *found;
}

TEST(ReportEvaluation, ComparesModelsItemByItem) {
  const TemporaryFolder folder;
  write_results(folder.path() / "dense", "dense", {1, 1, 0, 1});
  write_results(folder.path() / "sparse", "spectral", {1, 0, 0, 0});
  write_file(folder.path() / "dense/seconds_prism.json", R"({"piqa": 2, "part_a": 1.5, "part_b": 2.0})");
  const auto records = read_evaluations({folder.path() / "dense", folder.path() / "sparse"});
  ASSERT_EQ(records.models.size(), 2u);
  EXPECT_EQ(records.models[0].label, "small");
  EXPECT_EQ(records.models[1].label, "small, spectral p=0.9");
  const auto tables = evaluation_tables(records);
  ASSERT_EQ(tables.size(), 5u);
  ASSERT_EQ(tables[0].rows.size(), 5u) << "of three tasks and two parts";
  EXPECT_EQ(row_of(tables[0], "piqa").at(2).text, "0.5000");
  EXPECT_EQ(row_of(tables[0], "piqa").at(2).spread, "0.2500");
  EXPECT_EQ(row_of(tables[0], "part_a").at(2).text, "1.0000");
  EXPECT_EQ(row_of(tables[0], "wikitext").at(2).spread, "") << "perplexities have no error";
  EXPECT_EQ(tables[1].caption, "Difference to small");
  ASSERT_EQ(tables[1].rows.size(), 4u) << "no samples of the perplexity";
  // Differences 0, -1, 0 and -1: mean -0.5, deviation sqrt(1/3), t(0.975; 3) = 3.18245.
  EXPECT_EQ(row_of(tables[1], "piqa").at(2).text, "-0.5000 (-1.4187 to +0.4187)");
  EXPECT_EQ(row_of(tables[1], "whole").at(2).text, "-0.5000 (-1.6252 to +0.6252)")
      << "of each part, 0 and -1: standard error 1/2; of the group, sqrt(1/4 + 1/4) / 2";
  EXPECT_EQ(row_of(tables[2], "piqa").at(2).text, "0.250");
  EXPECT_EQ(row_of(tables[3], "piqa").at(1).text, kNoValue) << "no recall of dense attention";
  EXPECT_EQ(row_of(tables[3], "piqa").at(2).text, "0.8750");
  EXPECT_EQ(tables[4].caption, "Seconds");
  EXPECT_EQ(row_of(tables[4], "whole").at(1).text, "3.5") << "of both parts";
  EXPECT_TRUE(evaluation_pictures(records).empty());
}

TEST(ReportEvaluation, ShowsLargeGroupsWithoutTheirParts) {
  const TemporaryFolder folder;
  for (const int64_t count : {kMostPartsShown, kMostPartsShown + 1}) {
    write_results(folder.path() / "a", "dense", {1, 1});
    auto json = parse_json(read_file(folder.path() / "a/results_prism.json"), "results");
    json["group_subtasks"]["whole"] = Json::array({"part_a", "part_b"});
    for (int64_t i = 2; i < count; ++i) {
      const auto name = fmt::format("part_{}", i);
      json["group_subtasks"]["whole"].push_back(name);
      json["results"][name] = {{"sample_len", 2}, {"acc,none", 1.0}, {"acc_stderr,none", 0.0}};
    }
    write_file(folder.path() / "a/results_prism.json", json.dump());
    const auto tables = evaluation_tables(read_evaluations({folder.path() / "a"}));
    EXPECT_EQ(row_of(tables[0], "part_a").empty(), count > kMostPartsShown) << count;
    EXPECT_FALSE(row_of(tables[0], "whole").empty()) << count;
  }
}

TEST(ReportEvaluation, NamesModelsOfPathsThatEndWithASlash) {
  const TemporaryFolder folder;
  write_results(folder.path() / "a", "dense", {1, 1});
  for (const auto* path : {"models/small/", "models/small/.", "small"}) {
    auto json = parse_json(read_file(folder.path() / "a/results_prism.json"), "results");
    json["config"]["model"] = path;
    write_file(folder.path() / "a/results_prism.json", json.dump());
    EXPECT_EQ(read_evaluations({folder.path() / "a"}).models[0].label, "small") << path;
  }
}

TEST(ReportEvaluation, DoesNotPairOtherQuestions) {
  const TemporaryFolder folder;
  write_results(folder.path() / "a", "dense", {1, 1, 0, 1});
  write_results(folder.path() / "b", "dense", {1, 1, 0});
  const auto records = read_evaluations({folder.path() / "a", folder.path() / "b"});
  EXPECT_EQ(records.models[0].label, fmt::format("small ({})", (folder.path() / "a").string()))
      << "of one name, told apart by their folders";
  const auto tables = evaluation_tables(records);
  ASSERT_EQ(tables.size(), 2u);
  EXPECT_TRUE(row_of(tables[1], "piqa").empty()) << "of other items";
  EXPECT_FALSE(row_of(tables[1], "whole").empty());
  EXPECT_CONTAINS(tables[0].notes.back(),
                  "the same items of piqa, or read them in the same windows; these figures do not");
  write_results(folder.path() / "b", "dense", {1, 1, 0, 1}, /*seed=*/2);
  EXPECT_TRUE(
      row_of(evaluation_tables(read_evaluations({folder.path() / "a", folder.path() / "b"}))[1], "piqa").empty())
      << "rows may be alike where prompts are not";
  std::filesystem::remove(folder.path() / "b/samples_piqa_prism.jsonl");
  EXPECT_EQ(evaluation_tables(read_evaluations({folder.path() / "a", folder.path() / "b"}))[0].notes.size(), 1u)
      << "without samples the items are not known";
}

TEST(ReportEvaluation, ComparesPerplexitiesByTheirUnits) {
  const TemporaryFolder folder;
  for (const auto& [name, nats] : {std::pair{"a", std::array{2.0, 6.0}}, {"b", std::array{3.0, 9.0}}}) {
    write_results(folder.path() / name, "dense", {1, 1});
    auto json = parse_json(read_file(folder.path() / name / "results_prism.json"), "results");
    json["results"]["wikitext"] = {{"sample_len", 2}, {"bits_per_byte,none", 1}, {"bits_per_byte_stderr,none", "N/A"}};
    json["config"]["context"] = name[0] == 'a' ? 64 : 128;
    write_file(folder.path() / name / "results_prism.json", json.dump());
    std::string rows;
    for (const double each : nats)
      rows +=
          Json{{"doc", each > 3}, {"arguments", 1}, {"bits_per_byte", {-each * std::numbers::ln2, each > 3 ? 3 : 1}}}
              .dump() +
          "\n";
    write_file(folder.path() / name / "samples_wikitext_prism.jsonl", rows);
  }
  const auto tables = evaluation_tables(read_evaluations({folder.path() / "a", folder.path() / "b"}));
  EXPECT_CONTAINS(tables[0].notes.back(), "contexts of 64 and 128 tokens");
  const auto found = std::ranges::find(tables[1].rows, "wikitext", [](const auto& each) { return each[0].text; });
  ASSERT_NE(found, tables[1].rows.end());
  const auto& row = *found;
  // (3 + 9) / 4 bits less (2 + 6) / 4, and 3 less 2 in both items, so that no sample differs.
  EXPECT_EQ(row[2].text, "+1.0000 (+1.0000 to +1.0000)");
  auto rows = read_file(folder.path() / "b/samples_wikitext_prism.jsonl");
  rows.replace(rows.find(",1]"), 3, ",2]");
  write_file(folder.path() / "b/samples_wikitext_prism.jsonl", rows);
  const auto others = evaluation_tables(read_evaluations({folder.path() / "a", folder.path() / "b"}));
  for (const auto& each : others[1].rows)
    EXPECT_NE(each[0].text, "wikitext") << "of other units, e.g. tokens of another tokenizer";
}

TEST(ReportEvaluation, SaysThatWindowsDiffer) {
  const TemporaryFolder folder;
  const auto notes = [&](int window) {
    for (const auto& [name, size] : {std::pair{"a", 64}, {"b", window}}) {
      write_results(folder.path() / name, "dense", {1, 1});
      auto json = parse_json(read_file(folder.path() / name / "results_prism.json"), "results");
      json["config"].update({{"window", size}, {"stride", 64}});
      json["results"]["perplexity"] = {
          {"sample_len", 1}, {"token_perplexity,none", 20.5}, {"token_perplexity_stderr,none", "N/A"}};
      json["higher_is_better"]["perplexity"] = {{"token_perplexity", false}};
      write_file(folder.path() / name / "results_prism.json", json.dump());
      write_file(folder.path() / name / "samples_perplexity_prism.jsonl",
                 R"({"doc": {"bytes": 3}, "arguments": {}, "token_perplexity": [-3, 1]})"
                 "\n");
    }
    return evaluation_tables(read_evaluations({folder.path() / "a", folder.path() / "b"}))[0].notes;
  };
  EXPECT_EQ(notes(64).size(), 1u);
  EXPECT_CONTAINS(notes(128).back(), "the same items of perplexity, or read them in the same windows");
}

TEST(ReportEvaluation, DrawsTheGridOfNeedles) {
  const TemporaryFolder folder;
  write_results(folder.path(), "dense", {1, 1});
  std::string rows;
  for (const int64_t length : {1000, 2000})
    for (const int64_t depth : {0, 100})
      for (const double found : {1.0, length == 2000 && depth == 0 ? 0.0 : 1.0})
        rows +=
            Json{{"doc", {{"length", length}, {"depth", depth}}}, {"arguments", 1}, {"contains", found}}.dump() + "\n";
  write_file(folder.path() / "samples_needle_grid_prism.jsonl", rows);
  auto json = parse_json(read_file(folder.path() / "results_prism.json"), "results");
  json["results"]["needle_grid"] = {{"sample_len", 8}, {"contains,none", 0.875}, {"contains_stderr,none", 0.1}};
  write_file(folder.path() / "results_prism.json", json.dump());
  const auto pictures = evaluation_pictures(read_evaluations({folder.path()}));
  ASSERT_EQ(pictures.size(), 1u);
  EXPECT_EQ(pictures[0].map.rows, (std::vector<std::string>{"0", "100"}));
  EXPECT_EQ(pictures[0].map.columns, (std::vector<std::string>{"1000", "2000"}));
  EXPECT_EQ(pictures[0].map.values, (std::vector<double>{1, 0.5, 1, 1}));
}

TEST(ReportEvaluation, RefusesOtherFolders) {
  const TemporaryFolder folder;
  EXPECT_REFUSED(read_evaluations({folder.path()}), "expected results_prism.json in");
  write_file(folder.path() / "results_prism.json", "{\"results\": 3}");
  EXPECT_REFUSED(read_evaluations({folder.path()}), "expected the files of prism eval --out in");
  write_results(folder.path(), "dense", {1, 1});
  auto json = parse_json(read_file(folder.path() / "results_prism.json"), "results");
  json["group_subtasks"]["piqa"] = Json::array();
  write_file(folder.path() / "results_prism.json", json.dump());
  EXPECT_EQ(read_evaluations({folder.path()}).models.size(), 1u) << "a group without parts";
  write_file(folder.path() / "samples_part_a_prism.jsonl", "");
  EXPECT_REFUSED(read_evaluations({folder.path()}), "expected the answers to 2 items in");
  std::filesystem::remove(folder.path() / "samples_part_a_prism.jsonl");
  json["results"]["piqa"]["acc_stderr,none"] = -5;
  write_file(folder.path() / "results_prism.json", json.dump());
  EXPECT_REFUSED(read_evaluations({folder.path()}), "expected standard errors of 0 or more");
  json["results"] = Json::object();
  write_file(folder.path() / "results_prism.json", json.dump());
  EXPECT_REFUSED(read_evaluations({folder.path()}), "expected results in");
  write_file(folder.path() / "results_prism.json", "what");
  EXPECT_THROW(read_evaluations({folder.path()}), InputError);
}

}  // namespace
}  // namespace prism
