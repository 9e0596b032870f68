// Tasks, their items, and how they are encoded, against lm-evaluation-harness.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/evaluation/tasks/figures.h"
#include "prism/evaluation/tasks/items.h"
#include "prism/evaluation/tasks/row_values.h"
#include "prism/evaluation/tasks/task.h"
#include "tests/core/message_of.h"
#include "tests/core/temporary_folder.h"
#include "tests/evaluation/tasks/task_of.h"

namespace prism {
namespace {

TaskItem item_of(const std::string& task, const std::string& row) {
  return task_of(task).item(parse_json(row, "row"));
}

void expect_queries(const TaskItem& item, const std::vector<std::pair<std::string, std::string>>& expected) {
  ASSERT_EQ(item.queries.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(item.queries[i].context, expected[i].first);
    EXPECT_EQ(item.queries[i].continuation, expected[i].second);
  }
}

TEST(Tasks, AskWhatTheHarnessAsks) {
  auto item = item_of("piqa", R"({"goal": "G", "sol1": "A", "sol2": "B", "label": "1"})");
  expect_queries(item, {{"Question: G\nAnswer:", " A"}, {"Question: G\nAnswer:", " B"}});
  EXPECT_EQ(item.gold, 1);
  item = item_of("arc_easy",
                 R"({"question": "Q", "choices": {"text": ["x", "y"], "label": ["1", "2"]}, "answerKey": "2"})");
  expect_queries(item, {{"Question: Q\nAnswer:", " x"}, {"Question: Q\nAnswer:", " y"}});
  EXPECT_EQ(item.gold, 1);
  EXPECT_REFUSED(
      item_of("arc_easy",
              R"({"question": "Q", "choices": {"text": ["x", "y"], "label": ["A", "B"]}, "answerKey": "C"})"),
      "expected an answerKey among the labels A and B; found C");
  EXPECT_REFUSED(
      item_of("arc_easy",
              R"({"question": "Q", "choices": {"text": ["x", "y", "z"], "label": ["A", "B"]}, "answerKey": "A"})"),
      "as many labels as texts of choices; found 2 and 3");
  item = item_of("arc_challenge", R"({"query": "Question: Q", "choices": ["x", "y"], "gold": 0})");
  expect_queries(item, {{"Question: Q\nAnswer:", " x"}, {"Question: Q\nAnswer:", " y"}});
  item = item_of("winogrande", R"({"sentence": "As _ said, no.", "option1": "he", "option2": "she", "answer": "2"})");
  expect_queries(item, {{"As he", " said, no."}, {"As she", " said, no."}});
  EXPECT_EQ(item.gold, 1);
  item = item_of("boolq", R"({"question": "is it", "passage": "P.", "answer": true})");
  expect_queries(item, {{"P.\nQuestion: is it?\nAnswer:", " no"}, {"P.\nQuestion: is it?\nAnswer:", " yes"}});
  EXPECT_EQ(item_of("boolq", R"({"question": "q", "passage": "P.", "title": "T", "answer": true})").queries[0].context,
            "T -- P.\nQuestion: q?\nAnswer:");
  EXPECT_EQ(item.gold, 1);
  item = item_of(
      "hellaswag",
      R"({"activity_label": "Baking", "ctx_a": "A cook.", "ctx_b": "the oven", "endings": ["a", "b [step] c"], "label": 1})");
  expect_queries(item, {{"Baking: A cook. The oven", " a"}, {"Baking: A cook. The oven", " b c"}});
  item = item_of("hellaswag",
                 R"({"activity_label": "Baking", "ctx": "A cook. the oven", "endings": ["a", "b"], "label": "0"})");
  expect_queries(item, {{"Baking: A cook. The oven", " a"}, {"Baking: A cook. The oven", " b"}});
  item = item_of("hellaswag",
                 R"({"activity_label": "Baking", "ctx": "a cook Bakes.", "endings": ["a", "b"], "label": "0"})");
  expect_queries(item, {{"Baking: a cook Bakes.", " a"}, {"Baking: a cook Bakes.", " b"}});
  item = item_of("lambada_openai", R"({"text": "He said hello"})");
  expect_queries(item, {{"He said", " hello"}});
  EXPECT_REFUSED(
      item_of("blimp_causative", R"({"sentence_good": "A.", "sentence_bad": "B.", "UID": "tough_vs_raising_1"})"),
      "expected a row of BLiMP's part causative; found one of tough_vs_raising_1");
  item = item_of("blimp_causative", R"({"sentence_good": "A.", "sentence_bad": "B.", "UID": "causative"})");
  expect_queries(item, {{"", " A."}, {"", " B."}});
  item = item_of("generate", R"({"prompt": "P", "targets": "x", "stop": ["\n"]})");
  expect_queries(item, {{"P", ""}});
  EXPECT_EQ(item.targets, std::vector<std::string>{"x"});
}

TEST(Tasks, CleanTextsAsTheHarnessDoes) {
  for (const auto& each : harness()["wikitext"]) {
    const auto page = each["page"].get<std::string>();
    EXPECT_EQ(without_wikitext_marks(page), each["text"].get<std::string>());
    EXPECT_EQ(words_between_blanks(page), each["words"].get<int64_t>()) << page;
  }
  for (const auto& each : harness()["wikihow"])
    EXPECT_EQ(without_wikihow_marks(each["text"].get<std::string>()), each["cleaned"].get<std::string>());
}

TEST(Tasks, HaveGroupsAndSuggestNames) {
  const auto blimp = find_tasks({"blimp", "piqa", "blimp_causative"});
  EXPECT_EQ(blimp.size(), 68u) << "67 parts, each once";
  EXPECT_EQ(blimp.back().name, "piqa");
  const auto names = task_names();
  EXPECT_EQ(std::set(names.begin(), names.end()).size(), names.size());
  EXPECT_REFUSED(find_tasks({"piqua"}), "did you mean piqa?");
  EXPECT_REFUSED(find_tasks({"ruler_niah"}), "did you mean ruler_niah_single_1?");
  EXPECT_REFUSED(find_tasks({"squad"}), "expected a task that is one of perplexity, piqa");
}

TEST(RowValues, CountWordsBetweenWhiteSpace) {
  EXPECT_EQ(count_words(""), 0);
  EXPECT_EQ(count_words(" \n\t "), 0);
  EXPECT_EQ(count_words("one, two\xC2\xA0three\xE2\x80\x89 four "), 4) << "no-break and thin spaces";
  EXPECT_EQ(count_words("caf\xE9 \xFF\xFF x"), 3) << "a byte that is not UTF-8 belongs to its word";
}

TEST(TextItems, AreTheFirstDocumentsHoweverTheyArrive) {
  const TemporaryFolder folder;
  const auto file = (folder.path() / "text.txt").string();
  std::string first;
  for (int i = 0; i < 100; ++i) first += "the first document ";
  write_file(file, first + "\n\n\n\nthe second\n\n\n\nthe third");
  const auto read = [&](int64_t documents, int64_t piece_bytes) {
    TextSource source({file}, {.separator = "\\n\\n\\n\\n", .piece_bytes = piece_bytes});
    return text_items(task_of("perplexity"), source, documents);
  };
  const auto items = read(2, 16);
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0].queries.at(0).continuation, first);
  EXPECT_EQ(items[0].words, 300);
  EXPECT_EQ(items[1].row["bytes"], 10);
  EXPECT_EQ(items[0].row, read(0, 1 << 20)[0].row) << "size and fingerprint";
  write_file(file, "");
  EXPECT_REFUSED(read(0, 16), "expected text; found none");
}

class TaskFiles {
 public:
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((folder_.path() / name).parent_path());
    write_file(folder_.path() / name, text);
  }
  std::string path(const std::string& name = "") const { return (folder_.path() / name).string(); }

 private:
  TemporaryFolder folder_;
};

TEST(ReadItems, FindsFilesLabelsAndShots) {
  const TaskFiles files;
  files.write("piqa/valid.jsonl", R"({"goal": "a", "sol1": "b", "sol2": "c"})"
                                  "\n\n"
                                  R"({"goal": "d", "sol1": "e", "sol2": "f"})"
                                  "\n");
  files.write("piqa/valid-labels.lst", "1\n0\n");
  const auto task = task_of("piqa");
  auto items = read_items(task, files.path(), {});
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0].gold, 1);
  EXPECT_EQ(items[1].gold, 0);
  EXPECT_EQ(read_items(task, files.path(), {.limit = 1}).size(), 1u);
  EXPECT_EQ(read_items(task, files.path("piqa"), {}).size(), 2u) << "the task's own folder";
  EXPECT_REFUSED(read_items(task_of("hellaswag"), files.path("piqa"), {}), "expected hellaswag/hellaswag_val.jsonl");
  items = read_items(task, files.path("piqa/valid.jsonl"),
                     {.limit = 1, .shots = 1, .shots_from = files.path("piqa/valid.jsonl")});
  EXPECT_EQ(items[0].queries[0].context, "Question: d\nAnswer: e\n\nQuestion: a\nAnswer:")
      << "a question is not among its own shots";
  EXPECT_REFUSED(read_items(task, files.path(), {.shots = 1}), "expected the file of the shots");
  EXPECT_REFUSED(read_items(task, files.path(), {.shots = 3, .shots_from = files.path("piqa/valid.jsonl")}),
                 "expected 3 rows of shots");
  EXPECT_REFUSED(read_items(task, files.path(), {.shots_from = files.path("piqa/valid.jsonl")}), "expected the number");
  files.write("piqa/train.jsonl", R"({"goal": "g", "sol1": "h", "sol2": "i"})");
  EXPECT_REFUSED(read_items(task, files.path("piqa/train.jsonl"), {}),
                 "a member label in each, or the file train-labels.lst beside it; found neither");
  files.write("piqa/train-labels.lst", "0\n");
  items = read_items(task, files.path(), {.limit = 1, .shots = 1, .shots_from = files.path("piqa/train.jsonl")});
  EXPECT_EQ(items[0].queries[0].context, "Question: g\nAnswer: h\n\nQuestion: a\nAnswer:");
  files.write("piqa/valid-labels.lst", "1\nx\n");
  EXPECT_REFUSED(read_items(task, files.path(), {}), "valid.jsonl, line 3, or its label in valid-labels.lst, line 2");
  EXPECT_REFUSED(read_items(task, files.path(), {.limit = -1}), "limit of 0 or more; found -1");
}

TEST(ReadItems, PutTwoBlanksBeforeTheAnswersOfShotsToComplete) {
  const TaskFiles files;
  files.write("lambada/lambada_test.jsonl", R"({"text": "a b c"})"
                                            "\n"
                                            R"({"text": "d e f"})"
                                            "\n");
  const auto items = read_items(task_of("lambada_openai"), files.path(),
                                {.limit = 1, .shots = 1, .shots_from = files.path("lambada/lambada_test.jsonl")});
  EXPECT_EQ(items[0].queries[0].context, "d e  f\n\na b") << "as lm-evaluation-harness 0.4.13 writes them";
}

TEST(ReadItems, NamesTheLineOfAWrongRow) {
  const TaskFiles files;
  const auto refused = [&](const std::string& task, const std::string& row) {
    files.write("rows.jsonl", "{\"text\": \"two words\"}\n" + row + "\n");
    return message_of<InputError>([&] { read_items(task_of(task), files.path("rows.jsonl"), {}); });
  };
  EXPECT_CONTAINS(refused("lambada_openai", "{\"other\": 1}"),
                  "rows.jsonl, line 2: expected a row with the member text");
  EXPECT_CONTAINS(refused("lambada_openai", "{\"text\": \"one\"}"), "line 2: expected a text of several words");
  EXPECT_CONTAINS(refused("lambada_openai", "{\"text\": [1]}"), "line 2: expected text as text; found array");
  EXPECT_CONTAINS(refused("lambada_openai", "[1]"), "line 2: expected a JSON object");
  EXPECT_CONTAINS(refused("lambada_openai", "{"), "line 2");
  files.write("rows.jsonl", R"({"query": "q", "choices": ["a", "b"], "gold": 2})");
  EXPECT_REFUSED(read_items(task_of("multiple_choice"), files.path("rows.jsonl"), {}),
                 "line 1: expected a right answer among 2 choices, numbered from 0; found 2");
  files.write("rows.jsonl", "");
  EXPECT_REFUSED(read_items(task_of("multiple_choice"), files.path("rows.jsonl"), {}), "expected rows in");
  EXPECT_REFUSED(read_items(task_of("piqa"), files.path(), {}), "expected piqa/valid.jsonl in");
  EXPECT_REFUSED(read_items(task_of("generate"), files.path(), {}),
                 "expected a file of your own for the task generate");
}

TEST(ReadItems, TakesEachTextOfAFolderAsABook) {
  const TaskFiles files;
  files.write("books/a.txt", "One  two\nthree.");
  files.write("books/b.txt", "Four");
  files.write("books/c.jsonl", "{}\n");
  const auto task = task_of("books");
  const auto items = read_items(task, files.path("books"), {});
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0].queries[0].continuation, "One  two\nthree.");
  EXPECT_EQ(items[0].words, 3);
  EXPECT_EQ(items[0].bytes, 15);
  EXPECT_EQ(items[0].row["file"], "a.txt");
  EXPECT_FALSE(items[0].row.contains("page"));
  EXPECT_NE(items[0].row["fingerprint"], items[1].row["fingerprint"]);
  EXPECT_EQ(read_items(task, files.path("books/b.txt"), {}).size(), 1u);
  const auto halves = read_items(task_of("wikitext_halves"), files.path("books/a.txt"), {});
  EXPECT_EQ(halves.at(0).queries[0].continuation, "One  two\nthree.");
  EXPECT_FALSE(halves[0].row.contains("page"));
  files.write("books/empty.txt", " \n");
  EXPECT_REFUSED(read_items(task, files.path("books"), {}), "empty.txt: expected text; found none");
  EXPECT_REFUSED(read_items(task, files.path("nowhere"), {}), "expected a folder of your own for the task books");
}

TEST(ReadItems, DividesWikitextAtItsHeadings) {
  const auto pages = wikitext_pages(" \n = One = \n \n text \n = = Part = = \n more \n \n = Two = \n text = x = \n");
  ASSERT_EQ(pages.size(), 2u);
  EXPECT_EQ(pages[0], " = One = \n \n text \n = = Part = = \n more \n ");
  EXPECT_EQ(pages[1], " = Two = \n text = x = \n");
}

ItemAnswers answers(const std::vector<double>& log_likelihoods, bool is_greedy = false) {
  ItemAnswers made;
  for (const double each : log_likelihoods)
    made.answers.push_back({.log_likelihood = each, .is_greedy = is_greedy, .text = {}});
  return made;
}

TEST(TaskFigures, CountTheLikeliestChoiceByLength) {
  TaskItem item;
  item.choices = {"a", "\u00e9\u00e9", "dddd"};  // 1, 2 and 4 characters; 1, 4 and 4 bytes
  item.gold = 1;
  const auto scores = [&](const std::vector<double>& values) {
    return item_scores(task_of("piqa"), item, answers(values));
  };
  EXPECT_EQ(scores({-3, -2, -3}), (std::vector<double>{1, 0, 1})) << "-3, -1, -0.75; -3, -0.5, -0.75";
  EXPECT_EQ(scores({-1, -1, -8}), (std::vector<double>{0, 1, 1})) << "of equal ones, the first";
  EXPECT_EQ(scores({-9, -4, -4}), (std::vector<double>{1, 0, 1}));
}

TEST(TaskFigures, EqualTheHarnesss) {
  const auto task = task_of("lambada_openai");
  for (const auto& each : harness()["means"]) {
    const auto found = statistic(each["values"].get<std::vector<double>>());
    EXPECT_NEAR(found.mean, each["mean"].get<double>(), 1e-12);
    EXPECT_NEAR(found.standard_error(), each["error"].get<double>(), 1e-12);
  }
  const auto& expected = harness()["perplexity"];
  const auto values = expected["values"].get<std::vector<double>>();
  std::vector<TaskItem> items(values.size());
  std::vector<ItemAnswers> given;
  for (const double each : values) given.push_back(answers({each}, each > -1));
  const auto figures = figures_of(task, items, given);
  EXPECT_NEAR(figures[0].value, expected["perplexity"].get<double>(), 1e-9);
  // A bootstrap of n samples is within 1/sqrt(2n) of its limit, 0.7%, twice out of three times.
  EXPECT_NEAR(figures[0].standard_error / expected["error"].get<double>(), 1, 0.03);
  EXPECT_EQ(figures[1].name, "acc");
  const auto words = harness()["weighted"]["words"].get<std::vector<int64_t>>();
  for (size_t i = 0; i < items.size(); ++i) items[i].words = items[i].bytes = words[i];
  const auto weighted = figures_of(task_of("wikitext"), items, given);
  EXPECT_NEAR(weighted[0].value, harness()["weighted"]["word_perplexity"].get<double>(), 1e-9);
  EXPECT_NEAR(weighted[2].value, harness()["weighted"]["bits"].get<double>(), 1e-9);
  EXPECT_TRUE(std::isnan(weighted[0].standard_error));
  for (size_t i = 0; i < items.size(); ++i) given[i].tokens = words[i];
  EXPECT_NEAR(figures_of(task_of("wikitext_halves"), items, given)[0].value, weighted[0].value, 1e-9);
  for (const auto& each : harness()["mcnemar"]) {
    const int64_t a = each["a"].get<int64_t>(), b = each["b"].get<int64_t>();
    EXPECT_NEAR(sign_test(a, a + b), each["p"].get<double>(), 1e-12);
  }
  for (const auto& each : harness()["paired"]) {
    const auto paired = paired_score(each["a"].get<std::vector<double>>(), each["b"].get<std::vector<double>>());
    EXPECT_NEAR(paired.difference, each["difference"].get<double>(), 1e-12);
    EXPECT_NEAR(paired.standard_error, each["error"].get<double>(), 1e-12);
    EXPECT_NEAR(paired.interval.low, each["low"].get<double>(), 1e-9);
    EXPECT_NEAR(paired.interval.high, each["high"].get<double>(), 1e-9);
  }
  for (const auto& each : harness()["groups"])
    EXPECT_NEAR(error_of_mean(each["errors"].get<std::vector<double>>()), each["error"].get<double>(), 1e-15);
}

TEST(TaskFigures, FindTargetsInAnswersAsRulerDoes) {
  const auto score = [](const char* task, const std::vector<std::string>& targets, const std::string& text) {
    TaskItem item;
    item.targets = targets;
    ItemAnswers answers;
    answers.answers = {{.text = text}};
    return item_scores(task_of(task), item, answers).at(0);
  };
  EXPECT_EQ(score("ruler_niah_multivalue", {"12", "345"}, "It is 345."), 50);
  EXPECT_EQ(score("ruler_qa_1", {"12", "345"}, "It is 345."), 100) << "one is enough";
  EXPECT_EQ(score("ruler_qa_1", {"12", "34"}, "It is 5."), 0);
  EXPECT_EQ(score("ruler_vt", {"ABC", "Def"}, "abc and DEF"), 100) << "in any case";
  EXPECT_EQ(score("ruler_vt", {"a\nb"},
                  "a\x01"
                  "b"),
            100)
      << "control characters count as line feeds";
  EXPECT_EQ(score("ruler_vt", {"a"}, ""), 0);
}

TEST(TaskFigures, OfAGroupCompareTheMeansOfItsParts) {
  const auto first = paired_score({1, 1, 0, 1}, {0, 1, 0, 0}), second = paired_score({0, 1}, {1, 0});
  const auto group = paired_score({first, second});
  EXPECT_DOUBLE_EQ(group.difference, (0.5 + 0) / 2) << "parts count alike, whatever their items";
  EXPECT_DOUBLE_EQ(group.standard_error, std::hypot(first.standard_error, second.standard_error) / 2);
  EXPECT_EQ(group.items, 6);
  EXPECT_EQ(group.more_a, 3);
  EXPECT_EQ(group.more_b, 1);
  EXPECT_DOUBLE_EQ(group.p, sign_test(3, 4));
}

TEST(TaskFigures, CompareTwoModelsItemByItem) {
  TaskItem item;
  item.choices = {"a", "b"};
  const std::vector<TaskItem> items(10, item);
  std::vector<ItemAnswers> a(10, answers({-1, -2})), b(10, answers({-1, -2}));
  for (size_t i = 0; i < 6; ++i) b[i] = answers({-2, -1});
  const auto difference = differences_of(task_of("winogrande"), items, a, b).at(0).paired;
  EXPECT_DOUBLE_EQ(difference.difference, 0.6);
  EXPECT_EQ(difference.more_a, 6);
  EXPECT_NEAR(difference.p, 2.0 / 64, 1e-12);
  const auto same = differences_of(task_of("lambada_openai"), items, a, a);
  EXPECT_EQ(same[0].paired.difference, 0);
  EXPECT_EQ(same[0].paired.standard_error, 0);
  EXPECT_TRUE(std::isnan(same[0].paired.p));
}

TEST(TaskFigures, FindTargetsInAnswers) {
  const auto task = task_of("generate");
  TaskItem item;
  item.targets = {"Paris", "Rome"};
  const auto scores = [&](const std::string& text) {
    ItemAnswers made;
    made.answers = {{.text = text}};
    return item_scores(task, item, made);
  };
  EXPECT_EQ(scores(" Rome\n"), (std::vector<double>{1, 0.5}));
  EXPECT_EQ(scores("PARIS and rome"), (std::vector<double>{0, 1}));
  EXPECT_EQ(scores(""), (std::vector<double>{0, 0}));
}

}  // namespace
}  // namespace prism
