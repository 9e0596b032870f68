// Answers of a model, alone and in pairs, and evaluations that are interrupted.
#include "prism/evaluation/tasks/answers.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/core/stop.h"
#include "prism/evaluation/tasks/encode.h"
#include "prism/evaluation/tasks/samples.h"
#include "tests/core/message_of.h"
#include "tests/core/temporary_folder.h"
#include "tests/evaluation/tasks/task_of.h"
#include "tests/generation/tiny_model.h"

namespace prism {
namespace {

/// Questions of many lengths, so that they make several batches.
std::vector<TaskItem> questions(int64_t count) {
  const auto task = task_of("multiple_choice");
  std::vector<TaskItem> items;
  for (int64_t i = 0; i < count; ++i) {
    const std::string text(static_cast<size_t>(200 + 97 * i % 500), static_cast<char>('a' + i % 26));
    items.push_back(task.item(
        {{"query", text + " then?"}, {"choices", {"this", "that thing", text.substr(0, 5)}}, {"gold", i % 3}}));
  }
  return items;
}

const Tokenizer& tokenizer() {
  static const Tokenizer made = tiny_tokenizer();
  return made;
}

TEST(TaskModel, AnswersEachQueryAsTheScorerDoes) {
  TaskModel model(tiny_decoder(300), tokenizer());
  const auto items = questions(5);
  const auto found = model.answer(task_of("multiple_choice"), items);
  ASSERT_EQ(found.size(), items.size());
  Scorer scorer(tiny_decoder(300));
  for (size_t i = 0; i < items.size(); ++i) {
    int64_t cut = 0;
    for (size_t q = 0; q < 3; ++q) {
      const auto encoded = encode_query(tokenizer(), items[i].queries[q], 300);
      cut += encoded.cut > 0;
      const auto alone = scorer.score(std::vector{encoded.request(0, {})});
      EXPECT_NEAR(found[i].answers[q].log_likelihood, alone[0].log_likelihood, 1e-5);
      EXPECT_EQ(found[i].answers[q].is_greedy, alone[0].is_greedy);
    }
    EXPECT_EQ(found[i].cut, cut);
  }
  EXPECT_GT(found[4].cut, 0);
}

TEST(TaskModel, SumsTheWindowsOfAWholeText) {
  TaskModel model(tiny_decoder(32), tokenizer());
  std::string text;
  for (int i = 0; i < 50; ++i) text += "word " + std::to_string(i) + " ";
  const auto task = task_of("wikitext");
  const std::vector<TaskItem> items = {task.item({{"page", text}})};
  const auto found = model.answer(task, items);
  Scorer scorer(tiny_decoder(32));
  double sum = 0;
  const auto encoded = encode_rolling(tokenizer(), items[0].queries[0].continuation, 32);
  for (size_t i = 0; i < encoded.windows.size(); ++i)
    sum += scorer.score(std::vector{encoded.request(i, {})})[0].log_likelihood;
  // Thousands of nats, of products in float32 that add in another order where few rows share a call.
  EXPECT_NEAR(found[0].answers[0].log_likelihood, sum, 1e-3);
}

TEST(TaskModel, WritesAnswersUntilAStop) {
  // "a" is followed by "b", that by "c", and that by a line feed.
  TaskModel model(chain_decoder({{'a', 'b'}, {'b', 'c'}, {'c', '\n'}, {'\n', 'x'}}), tokenizer());
  const auto task = task_of("generate");
  std::vector<TaskItem> items = {task.item({{"prompt", "a"}, {"targets", "bc"}, {"stop", {"\n"}}}),
                                 task.item({{"prompt", "b"}, {"targets", "c"}, {"stop", {"x"}}})};
  const auto found = model.answer(task, items);
  EXPECT_EQ(found[0].answers[0].text, "bc");
  EXPECT_EQ(found[1].answers[0].text, "c\n");
  EXPECT_EQ(item_scores(task, items[1], found[1]), (std::vector<double>{1, 1}));
}

TEST(TaskPair, FindsNoDifferenceBetweenAModelAndItself) {
  TaskModel a(frozen_decoder(900), tokenizer()), b(frozen_decoder(900), tokenizer());
  Prefill all({.selector = "random", .settings = {{"share", 1.0}, {"block_size", 32}}});
  TaskModel sparse(frozen_decoder(900), tokenizer(), {.prefill = &all});
  const auto items = questions(6);
  for (auto* other : {&b, &sparse}) {
    // A selector reads no prefix that texts share, so that batches differ, and with them the sums of LibTorch's
    // products.
    if (other == &sparse && !PackedWeight::prompt_type()) continue;
    TaskPair pair(a, *other);
    const auto found = pair.answer(task_of("multiple_choice"), items);
    EXPECT_GT(found.divergences.size(), 18u);
    for (const double each : found.divergences) EXPECT_EQ(each, 0);
    for (const auto& difference : differences_of(task_of("multiple_choice"), items, found.a, found.b))
      EXPECT_EQ(difference.paired.difference, 0);
  }
  auto other = make_decoder(tiny_decoder(900)->config());
  other->initialise(7);
  TaskModel third(other, tokenizer());
  double sum = 0;
  for (const double each : TaskPair(a, third).answer(task_of("multiple_choice"), items).divergences) sum += each;
  EXPECT_GT(sum, 1);
  const auto strange = tiny_tokenizer(/*end_of_text=*/true, /*merges=*/false);
  TaskModel fourth(tiny_decoder(900), strange);
  TaskPair strangers(a, fourth);
  EXPECT_REFUSED(strangers.check(task_of("multiple_choice")), "two models with one tokenizer");
  EXPECT_REFUSED(strangers.answer(task_of("wikitext_halves"), items), "two models with one tokenizer");
  const auto task = task_of("wikitext");
  const std::vector<TaskItem> texts = {task.item({{"page", "what is written, by words and bytes"}})};
  const auto found = strangers.answer(task, texts);
  EXPECT_TRUE(found.divergences.empty());
  EXPECT_EQ(found.a, a.answer(task, texts));
  EXPECT_EQ(found.b, fourth.answer(task, texts));
}

TEST(TaskPair, MeasuresHowFarTheFirstIsFromTheSecond) {
  auto other = make_decoder(tiny_decoder(900)->config());
  other->initialise(7);
  TaskModel a(tiny_decoder(900), tokenizer()), b(other, tokenizer());
  const auto task = task_of("wikitext");
  const std::vector<TaskItem> texts = {task.item({{"page", "some words"}})};
  const auto found = TaskPair(a, b).answer(task, texts).divergences;
  const torch::NoGradGuard no_gradients;
  const auto encoded = encode_rolling(tokenizer(), texts[0].queries[0].continuation, 900);
  const std::vector<int64_t> read(encoded.tokens.begin(), encoded.tokens.end() - 1);
  const auto log_p = [&](TaskModel& model) {
    const auto& decoder = model.decoder();
    return decoder->head.logits(decoder(torch::tensor(read).unsqueeze(0), ForwardContext{}))[0]
        .to(torch::kDouble)
        .log_softmax(1);
  };
  const auto of_a = log_p(a), of_b = log_p(b);
  const auto expected = (of_b.exp() * (of_b - of_a)).sum(1), reverse = (of_a.exp() * (of_a - of_b)).sum(1);
  ASSERT_EQ(std::ssize(found), expected.size(0));
  for (int64_t i = 0; i < expected.size(0); ++i)
    EXPECT_NEAR(found[static_cast<size_t>(i)], expected[i].item<double>(), 1e-4);
  EXPECT_GT((expected - reverse).abs().max().item<double>(), 1e-2) << "the directions can be told apart";
}

TEST(TaskPair, AsksBothModelsTheSameWithinTheSmallerContext) {
  const std::map<int32_t, int32_t> next = {{'a', 'b'}, {'b', 'c'}, {'c', 'a'}};
  TaskModel small(chain_decoder(next, 20), tokenizer()), large(chain_decoder(next, 60), tokenizer());
  const auto task = task_of("generate");
  std::string prompt;
  for (int i = 0; i < 19; ++i) prompt += "abc"[i % 3];
  const std::vector<TaskItem> items = {task.item({{"prompt", prompt}, {"targets", "b"}})};
  const auto found = TaskPair(small, large).answer(task, items);
  EXPECT_EQ(found.a, found.b);
  EXPECT_EQ(found.a[0].answers[0].text, "bcabcabcab") << "half of the context is for the answer";
  EXPECT_EQ(found.a[0].cut, 1);
  EXPECT_EQ(large.answer(task, items)[0].cut, 0);
}

TEST(TaskModel, KeepsNoAnswerThatASignalCutShort) {
  // A process remembers the caught signal, so the test runs in its own process.
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const TemporaryFolder folder;
  const auto path = folder.path() / "samples.jsonl";
  const auto interrupted = [&] {
    catch_stop_signals();
    TaskModel model(chain_decoder({{'a', 'b'}, {'b', 'c'}, {'c', '\n'}, {'\n', 'x'}}), tokenizer());
    const auto task = task_of("generate");
    std::vector<TaskItem> items;
    for (const char* stop : {"b", "x"})
      items.push_back(task.item({{"prompt", "a"}, {"targets", "bc"}, {"stop", {stop}}}));
    SampleFile file(path, task, items);
    try {
      answer_all(model, task, items, &file, [](int64_t) { std::raise(SIGINT); }, {});
    } catch (const FailedError&) {
      std::_Exit(file.answers().empty() ? 0 : 2);
    }
    std::_Exit(1);
  };
  EXPECT_EXIT(interrupted(), testing::ExitedWithCode(0), "");
}

TEST(TaskModel, CountsWhatASelectorKeeps) {
  const auto items = questions(8);
  const auto task = task_of("multiple_choice");
  const auto answers_of = [&](size_t first) {
    PrefillMeter meter({.recall_rows = 2});
    Prefill sparse({.selector = "random", .settings = {{"share", 0.3}, {"block_size", 32}}}, {}, &meter);
    TaskModel model(tiny_decoder(900), tokenizer(), {.prefill = &sparse}, &meter);
    std::vector<ItemAnswers> answers;
    for (size_t i = first; i < items.size(); ++i)
      for (auto& each : model.answer(task, std::span(items).subspan(i, 1))) answers.push_back(std::move(each));
    return answers;
  };
  const auto all = answers_of(0), later = answers_of(5);
  for (size_t i = 0; i < later.size(); ++i) EXPECT_EQ(later[i], all[i + 5]) << "to the bit, whatever came before";
  const auto kept = kept_of(all);
  EXPECT_GT(kept.density(), 0);
  EXPECT_LT(kept.density(), 1);
  EXPECT_GT(kept.recall(), 0);
  EXPECT_LT(kept.recall(), 1);
}

TEST(SampleFile, ContinuesAnInterruptedEvaluationToTheSameFile) {
  const TemporaryFolder folder;
  const auto task = task_of("multiple_choice");
  const auto items = questions(150);
  ASSERT_GT(next_items(items).size(), 8u);
  ASSERT_LT(next_items(items).size(), 100u);
  TaskModel model(tiny_decoder(300), tokenizer());
  const auto evaluate = [&](const std::string& name) {
    SampleFile file(folder.path() / name, task, items);
    return answer_all(model, task, items, &file, {}, {});
  };
  const auto answers = evaluate("whole.jsonl");
  const auto whole = read_file(folder.path() / "whole.jsonl");
  EXPECT_EQ(answers, answer_all(model, task, items, nullptr, {}, {}));
  EXPECT_EQ(evaluate("whole.jsonl"), answers) << "read back";
  for (size_t part = 0; part < 10; ++part) {
    write_file(folder.path() / "part.jsonl", whole.substr(0, whole.size() * part / 10));
    EXPECT_EQ(evaluate("part.jsonl"), answers);
    EXPECT_EQ(read_file(folder.path() / "part.jsonl"), whole) << part;
  }
}

/// The figures of parts a and b of a group.
std::vector<TaskFigures> figures_of_parts(double a, double b) {
  std::vector<TaskFigures> parts;
  for (const auto& [name, value] : {std::pair{"a", a}, {"b", b}})
    parts.push_back({.task = {.name = name, .group = "both", .figures = {"acc"}, .parts = 2},
                     .figures = {{"acc", value, 0.1}},
                     .items = 10});
  return parts;
}

TEST(ResultsToJson, DropsAGroupOfWhichAPartHasChanged) {
  const auto parts = figures_of_parts(0.5, 0.7);
  const auto both = results_to_json(parts, Json::object(), Json());
  EXPECT_DOUBLE_EQ(both["results"]["both"]["acc,none"].get<double>(), 0.6);
  const auto same = results_to_json({parts[0]}, Json::object(), both);
  EXPECT_EQ(same, both) << "a part that is evaluated again, with the same figures";
  const auto changed = results_to_json({figures_of_parts(0.4, 0.7)[0]}, Json::object(), both);
  EXPECT_EQ(changed["results"]["a"]["acc,none"], 0.4);
  EXPECT_EQ(changed["results"]["b"]["acc,none"], 0.7);
  for (const auto* member : {"results", "groups", "group_subtasks", "versions", "density"})
    EXPECT_FALSE(changed[member].contains("both")) << member;
  const auto again = results_to_json(figures_of_parts(0.4, 0.7), Json::object(), changed);
  EXPECT_DOUBLE_EQ(again["results"]["both"]["acc,none"].get<double>(), 0.55);
}

TEST(SampleFile, RefusesTheAnswersToOtherQuestions) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "samples.jsonl";
  const auto task = task_of("multiple_choice");
  const auto items = questions(3), others = questions(4);
  TaskModel model(tiny_decoder(300), tokenizer());
  {
    SampleFile file(path, task, others);
    answer_all(model, task, others, &file, {}, {});
  }
  EXPECT_REFUSED(SampleFile(path, task, items), "line 4: expected the answers to item 3");
  EXPECT_REFUSED(SampleFile(path, task, std::span(others).subspan(1)), "line 1: expected the answers to item 0");
  write_file(path, "{\"doc\": 1}\n");
  EXPECT_REFUSED(SampleFile(path, task, items), "line 1: expected the answers to item 0");
  write_file(path, "what\n");
  EXPECT_THROW(SampleFile(path, task, items), InputError);
  write_file(path, "my precious");
  EXPECT_REFUSED(SampleFile(path, task, items), "found another text");
  EXPECT_EQ(read_file(path), "my precious");
  const auto link = folder.path() / "link.jsonl";
  std::filesystem::create_symlink(path, link);
  EXPECT_REFUSED(SampleFile(link, task, items), "found a link");
  auto asked = others;
  asked[0].queries[0].context += "!";
  std::filesystem::remove(path);
  {
    SampleFile file(path, task, others);
    answer_all(model, task, others, &file, {}, {});
  }
  EXPECT_REFUSED(SampleFile(path, task, asked), "line 1: expected the answers to item 0");
  auto text = read_file(path);
  const auto number = text.find("\"-") + 1;
  write_file(path, text.substr(0, number) + "nan" + text.substr(text.find('"', number)));
  EXPECT_REFUSED(SampleFile(path, task, others), "line 1: expected the answers to item 0");
}

}  // namespace
}  // namespace prism
