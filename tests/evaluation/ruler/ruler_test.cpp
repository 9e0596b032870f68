// RULER's prompts: what is hidden is there, they fill their length, and they are the same everywhere.
#include "prism/evaluation/ruler/ruler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/core/stop.h"
#include "prism/evaluation/ruler/words.h"
#include "prism/evaluation/tasks/figures.h"
#include "tests/core/message_of.h"
#include "tests/core/temporary_folder.h"
#include "tests/evaluation/tasks/task_of.h"
#include "tests/generation/tiny_model.h"

namespace prism {
namespace {

/// A folder with small sources of every kind.
class Sources {
 public:
  Sources() {
    std::string essay, words;
    for (int i = 0; i < 400; ++i) essay += "word" + std::to_string(i) + (i % 9 == 8 ? ". " : " ");
    write("essays.txt", essay);
    for (int i = 0; i < 600; ++i)
      words += std::string{"abcdefghij"[i / 60], "klmnop"[i / 10 % 6], "qrstuvwxyz"[i % 10], '\n'};
    write("words.txt", words + "Name\nto\nunbelievably\n");
    const auto paragraph = [](const std::string& text, bool is_impossible) {
      return Json{{"context", text},
                  {"qas",
                   {{{"question", "Who is in " + text + "?"},
                     {"is_impossible", is_impossible},
                     {"answers", {{{"text", "The " + text}}}}}}}};
    };
    Json articles = Json::array(), rows = Json::array();
    for (const char* name : {"first", "second", "third", "fourth", "fifth", "sixth"}) {
      const std::string text = name;
      articles.push_back({{"paragraphs", {paragraph(text, false), paragraph(text + " again", true)}}});
      rows.push_back(
          {{"question", "Which is " + text + "?"},
           {"answer", "This " + text},
           {"context", Json::parse(R"([["Title", ["This ", "one, )" + text + R"("]], ["Other", ["No."]]])")}});
    }
    write("squad.json", Json{{"data", articles}}.dump());
    write("hotpotqa.json", rows.dump());
  }
  void write(const std::string& name, const std::string& text) const { write_file(folder_.path() / name, text); }
  void remove(const std::string& name) const { std::filesystem::remove(folder_.path() / name); }
  RulerSources open() const { return {folder_.path().string(), ""}; }

 private:
  TemporaryFolder folder_;
};

const Tokenizer& tokenizer() {
  static const Tokenizer made = tiny_tokenizer();
  return made;
}

std::vector<std::string> ruler_names() {
  std::vector<std::string> names;
  for (const auto& task : made_tasks())
    if (is_ruler_task(task)) names.push_back(task.name);
  return names;
}

class Ruler : public testing::TestWithParam<std::string> {};

TEST_P(Ruler, HidesWhatItAsksForAndFillsTheLength) {
  const Sources files;
  auto sources = files.open();
  const auto task = task_of(GetParam());
  constexpr int64_t kLength = 6000;
  const auto items = ruler_items(task, tokenizer(), sources, kLength, {.samples = 6});
  ASSERT_EQ(items.size(), 6u);
  std::set<std::string> prompts;
  for (const auto& item : items) {
    const auto& prompt = item.queries[0].context;
    prompts.insert(prompt);
    EXPECT_LE(std::ssize(tokenizer().encode(prompt)) + item.new_tokens, kLength);
    for (const auto& target : item.targets)
      EXPECT_NE(prompt.find(target.substr(target.rfind(' ') + 1)), std::string::npos) << target;
    // A perfect answer and an empty one.
    ItemAnswers answers;
    std::string all;
    for (const auto& target : item.targets) all += "\x01 " + target + ",";
    answers.answers = {{.text = all}};
    EXPECT_EQ(item_scores(task, item, answers), std::vector<double>{100});
    answers.answers[0].text = "";
    EXPECT_EQ(item_scores(task, item, answers), std::vector<double>{0});
  }
  EXPECT_EQ(prompts.size(), 6u) << "each is another one";
  EXPECT_EQ(items[5].queries[0].context,
            ruler_items(task, tokenizer(), sources, kLength, {.samples = 6})[5].queries[0].context);
  const auto other = ruler_items(task, tokenizer(), sources, kLength, {.samples = 1, .seed = 43});
  EXPECT_NE(other[0].queries[0].context, items[0].queries[0].context);
}

TEST_P(Ruler, HasNoRoomForOneMoreUnit) {
  const Sources files;
  auto sources = files.open();
  const auto task = task_of(GetParam());
  const auto made = [&](int64_t length) { return ruler_items(task, tokenizer(), sources, length, {.samples = 1})[0]; };
  const auto tokens = [](const TaskItem& item) {
    return std::ssize(tokenizer().encode(item.queries[0].context)) + item.new_tokens;
  };
  constexpr int64_t kLength = 5000;
  const auto item = made(kLength);
  const int64_t units = item.row["units"].get<int64_t>();
  EXPECT_LE(tokens(item), kLength);
  // The prompt with one more unit is the first other one that greater lengths have room for.
  int64_t length = kLength;
  TaskItem next = item;
  while (next.row["units"] == units) next = made(++length);
  EXPECT_GT(tokens(next), kLength);
  if (GetParam() == "ruler_fwe") return;  // whose words depend on the length
  EXPECT_EQ(next.row["units"], units + 1);
  EXPECT_EQ(tokens(next), length) << "it fills that length";
}

TEST_P(Ruler, NamesTheShortestLengthThatWouldDo) {
  const Sources files;
  auto sources = files.open();
  const auto task = task_of(GetParam());
  const RulerOptions options{.samples = 4};
  const auto message = message_of<InputError>([&] { ruler_items(task, tokenizer(), sources, 200, options); });
  EXPECT_NE(message.find("expected a length that holds the smallest prompt of " + GetParam()), std::string::npos);
  const auto least = std::stoll(message.substr(message.find(", ") + 2));
  EXPECT_EQ(ruler_items(task, tokenizer(), sources, least, options).size(), 4u);
  EXPECT_REFUSED(ruler_items(task, tokenizer(), sources, least - 1, options), "expected a length that holds");
  EXPECT_REFUSED(ruler_items(task, tokenizer(), sources, 6000, {.samples = 0}), "at least 1 sample");
}

TEST(RulerPrompts, StopAtASignal) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto interrupted = [] {
    catch_stop_signals();
    const Sources files;
    auto sources = files.open();
    int64_t made = 0;
    try {
      ruler_items(task_of("ruler_vt"), tokenizer(), sources, 3000, {.samples = 9}, write_plainly, [&] {
        if (++made == 2) std::raise(SIGTERM);
      });
    } catch (const FailedError&) {
      std::_Exit(made == 2 ? 0 : 2);
    }
    std::_Exit(1);
  };
  EXPECT_EXIT(interrupted(), testing::ExitedWithCode(0), "");
}

INSTANTIATE_TEST_SUITE_P(Tasks, Ruler, testing::ValuesIn(ruler_names()), [](const auto& each) { return each.param; });

TEST(RulerPrompts, AreTheSameOnEveryMachine) {
  const Sources files;
  auto sources = files.open();
  uint64_t hash = 0;
  for (const auto& name : ruler_names())
    for (const auto& item : ruler_items(task_of(name), tokenizer(), sources, 5000, {.samples = 3})) {
      const auto text = item.queries[0].context + fmt::format("{}", fmt::join(item.targets, "|"));
      hash = mix64(hash + hash_bytes(std::as_bytes(std::span(text))));
    }
  EXPECT_EQ(hash, 12636837239117052216u) << "a change of this number changes what published scores mean";
}

TEST(NeedleGrid, PutsANeedleAtEveryDepthOfEveryLength) {
  const Sources files;
  auto sources = files.open();
  const auto items = grid_items(tokenizer(), sources, {.lengths = {3000, 5000}, .depths = {0, 50, 100}, .samples = 2});
  ASSERT_EQ(items.size(), 12u);
  for (const auto& item : items) {
    const auto& prompt = item.queries[0].context;
    const int64_t tokens = std::ssize(tokenizer().encode(prompt)) + item.new_tokens, length = item.row["length"];
    EXPECT_LE(tokens, length);
    EXPECT_GT(tokens, length - 20);
    const auto place = static_cast<double>(prompt.find(item.targets[0])) / static_cast<double>(prompt.size());
    const double depth = item.row["depth"].get<double>() / 100;
    // Beside the text stand some 400 characters of the question and the needle itself.
    EXPECT_NEAR(place, depth, 600.0 / static_cast<double>(prompt.size())) << prompt;
  }
  EXPECT_REFUSED(grid_items(tokenizer(), sources, {.depths = {101}}),
                 "expected depths from 0 to 100 percent; found 101");
}

TEST(RulerPrompts, AreWrittenAsAsked) {
  const Sources files;
  auto sources = files.open();
  const auto chat = [](const std::string& question, const std::string& answer) {
    return "<user>" + question + "</user><model>" + answer;
  };
  const auto item = ruler_items(task_of("ruler_vt"), tokenizer(), sources, 6000, {.samples = 1}, chat)[0];
  const auto& prompt = item.queries[0].context;
  EXPECT_TRUE(prompt.starts_with("<user>Memorize"));
  EXPECT_CONTAINS(prompt, "</user><model> Answer: According to");
  EXPECT_LE(std::ssize(tokenizer().encode(prompt)) + item.new_tokens, 6000) << "the template counts";
}

TEST(RulerPrompts, AskForOneThingInTheSingular) {
  const Sources files;
  auto sources = files.open();
  const auto prompt_of = [&](const std::string& name) {
    return ruler_items(task_of(name), tokenizer(), sources, 6000, {.samples = 1})[0].queries[0].context;
  };
  EXPECT_CONTAINS(prompt_of("ruler_niah_single_1"), "A special magic number is hidden within");
  EXPECT_CONTAINS(prompt_of("ruler_niah_single_1"), "One of the special magic numbers for ");
  EXPECT_CONTAINS(prompt_of("ruler_niah_single_3"), "What is the special magic uuid for ");
  EXPECT_CONTAINS(prompt_of("ruler_niah_multivalue"), "What are all the special magic numbers for ");
  const auto several = prompt_of("ruler_niah_multiquery");
  EXPECT_NE(several.find(", and "), std::string::npos);
  EXPECT_TRUE(several.ends_with(" mentioned in the provided text are"));
  EXPECT_TRUE(prompt_of("ruler_vt").ends_with(", they are: "));
  EXPECT_CONTAINS(prompt_of("ruler_qa_1"), "Document 1:\n");
}

TEST(RulerPrompts, DrawDistinctNumbersEvenly) {
  Random random(1);
  std::vector<int64_t> counts(10);
  for (int i = 0; i < 3000; ++i) {
    const auto drawn = draw_distinct(random, 4, 10);
    EXPECT_EQ(std::set(drawn.begin(), drawn.end()).size(), 4u);
    for (const int64_t each : drawn) ++counts[static_cast<size_t>(each)];
  }
  for (const int64_t count : counts) EXPECT_NEAR(count, 1200, 5 * 27) << "five standard deviations";
  EXPECT_EQ(draw_distinct(random, 3, 3).size(), 3u);
}

TEST(RulerPrompts, DivideEssaysIntoSentences) {
  const std::vector<std::string> words = {"One", "two.", "Is", "it?", "(Yes.)", "\"No!\"", "e.g", "end"};
  EXPECT_EQ(sentences_of(words, 8), (std::vector<std::string>{"One two.", "Is it?", "(Yes.)", "\"No!\"", "e.g end"}));
  EXPECT_EQ(sentences_of(words, 3), (std::vector<std::string>{"One two.", "Is"}));
  EXPECT_EQ(sentences_of(words, 10).back(), "e.g end One two.") << "essays are repeated";
  EXPECT_EQ(filled("{a}{b} {c} {a", {{"a", "{b}"}, {"b", "x"}}), "{b}x {c} {a");
}

TEST(RulerWords, AreDistinct) {
  for (const auto* words : {&ruler_adjectives(), &ruler_nouns()}) {
    EXPECT_GT(words->size(), 300u);
    EXPECT_EQ(std::set(words->begin(), words->end()).size(), words->size());
  }
}

TEST(RulerSources, SayWhatIsMissingOrWrong) {
  const Sources files;
  const auto refused = [&](const std::string& task) {
    auto sources = files.open();
    return message_of<InputError>([&] { ruler_items(task_of(task), tokenizer(), sources, 6000, {.samples = 1}); });
  };
  files.write("squad.json", "{\"data\": [{}]}");
  EXPECT_CONTAINS(refused("ruler_qa_1"), "squad.json: expected a row with the member paragraphs");
  files.write("squad.json", "{\"data\": []}");
  EXPECT_CONTAINS(refused("ruler_qa_1"), "squad.json: expected questions; found none");
  const std::string asked = R"({"data": [{"paragraphs": [{"context": "It is.", "qas": [)";
  files.write("squad.json", asked + R"({"question": "Is it?", "is_impossible": false, "answers": []}]}]}]})");
  EXPECT_CONTAINS(refused("ruler_qa_1"), "squad.json: expected answers to \"Is it?\", or is_impossible; found none");
  files.write("squad.json",
              asked + R"({"question": "Is it?", "is_impossible": false, "answers": [{"text": "It is."}]}]}]}]})");
  auto sources = files.open();
  EXPECT_REFUSED(ruler_items(task_of("ruler_qa_1"), tokenizer(), sources, 6000, {.samples = 2}),
                 "expected a question for each sample; found 1 in the file; lower --samples to that");
  files.write("hotpotqa.json", "[{\"context\": [1]}]");
  EXPECT_CONTAINS(refused("ruler_qa_2"), "hotpotqa.json: expected the layout of the published file");
  files.write("words.txt", "one\n");
  EXPECT_CONTAINS(refused("ruler_cwe"), "expected at least 100 words");
  files.remove("essays.txt");
  EXPECT_CONTAINS(refused("ruler_niah_single_2"), "expected essays in");
  files.remove("squad.json");
  EXPECT_CONTAINS(refused("ruler_qa_1"), "as dev-v2.0.json or squad.json; found none");
}

}  // namespace
}  // namespace prism
