// Runs prism eval on questions as a user does.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "prism/core/fields.h"
#include "prism/core/files.h"
#include "tests/cli/commands.h"

namespace prism {
namespace {

/// A folder with questions, made once.
const std::string& question_folder() {
  static const std::string name = [] {
    const auto folder = Workshop::folder() / "questions";
    std::filesystem::create_directories(folder / "piqa");
    std::string rows, labels, own;
    for (int i = 0; i < 30; ++i) {
      rows += Json{{"goal", "the goal " + std::to_string(i)}, {"sol1", "and the end"}, {"sol2", "xqz"}}.dump() + "\n";
      labels += i % 3 == 0 ? "1\n" : "0\n";
      own += Json{{"query", "the"}, {"choices", {"end", "way", "x"}}, {"gold", i % 3}}.dump() + "\n";
    }
    write_file(folder / "piqa/valid.jsonl", rows);
    write_file(folder / "piqa/valid-labels.lst", labels);
    write_file(folder / "own.jsonl", own);
    write_file(folder / "prompts.jsonl", "{\"prompt\": \"the\", \"targets\": [\"e\", \"a\"], \"stop\": [\" \"]}\n");
    return std::string("questions");
  }();
  return name;
}

Outcome ask(const std::vector<std::string>& tasks, const std::string& data, const std::vector<std::string>& more = {}) {
  std::vector<std::string> words = {"eval", trained(), "--threads", "1", "--data", data, "--task"};
  words.insert(words.end(), tasks.begin(), tasks.end());
  words.insert(words.end(), more.begin(), more.end());
  return run(words);
}

TEST(EvalTasks, PrintFiguresWithErrors) {
  const auto outcome = ask({"piqa"}, question_folder());
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  for (const char* words : {"task ", "piqa  ", " 30 ", "acc_norm", "+- error", "chance", "0.50", "computed in"})
    EXPECT_NE(outcome.out.find(words), std::string::npos) << words << " in " << outcome.out;
  const auto json = Json::parse(ask({"piqa"}, question_folder(), {"--json", "--limit", "10"}).out);
  EXPECT_EQ(json["results"]["piqa"]["sample_len"], 10);
  EXPECT_GE(json["results"]["piqa"]["acc,none"].get<double>(), 0);
  EXPECT_GE(json["results"]["piqa"]["acc_norm_stderr,none"].get<double>(), 0);
  EXPECT_EQ(json["config"]["limit"], 10);
}

TEST(EvalTasks, ReadAUsersQuestionsAndPrompts) {
  const auto choices = Json::parse(ask({"multiple_choice"}, question_folder() + "/own.jsonl", {"--json"}).out);
  EXPECT_NEAR(choices["results"]["multiple_choice"]["acc,none"].get<double>(), 1.0 / 3, 1e-9);
  const auto prompts = Json::parse(ask({"generate"}, question_folder() + "/prompts.jsonl", {"--json"}).out);
  EXPECT_TRUE(prompts["results"]["generate"].contains("contains,none"));
}

TEST(EvalTasks, WriteTheHarnesssFilesAndGoOnAfterAnInterruption) {
  const auto folder = Workshop::folder();
  ASSERT_EQ(ask({"piqa"}, question_folder(), {"--out", "whole"}).status, 0);
  const auto samples = read_file(folder / "whole/samples_piqa_prism.jsonl"),
             results = read_file(folder / "whole/results_prism.json");
  const auto row = Json::parse(samples.substr(0, samples.find('\n')));
  EXPECT_EQ(row["doc_id"], 0);
  EXPECT_EQ(row["target"], "1");
  EXPECT_EQ(row["arguments"]["gen_args_1"]["arg_1"], " xqz");
  EXPECT_EQ(row["resps"].size(), 2u);
  EXPECT_EQ(Json::parse(results)["results"]["piqa"]["alias"], "piqa");
  const auto report = run({"report", "--evaluation", "whole", "--out", "tasks.html"});
  EXPECT_EQ(report.status, 0) << report.err;
  EXPECT_NE(report.out.find("acc_norm"), std::string::npos) << report.out;
  expect_sentence(run({"report", "--evaluation", "questions", "--out", "tasks.html"}), 2,
                  {"expected results_prism.json"});
  ASSERT_EQ(ask({"piqa"}, question_folder(), {"--out", "part"}).status, 0);
  std::filesystem::remove(folder / "part/results_prism.json");
  write_file(folder / "part/samples_piqa_prism.jsonl", samples.substr(0, samples.size() / 2));
  ASSERT_EQ(ask({"piqa"}, question_folder(), {"--out", "part"}).status, 0);
  EXPECT_EQ(read_file(folder / "part/samples_piqa_prism.jsonl"), samples);
  EXPECT_EQ(read_file(folder / "part/results_prism.json"), results);
  std::filesystem::rename(folder / "part/samples_piqa_prism.jsonl", folder / "part/samples_piqa.jsonl");
  EXPECT_EQ(ask({"piqa"}, question_folder(), {"--out", "part"}).status, 0) << "the file under its former name";
  EXPECT_EQ(read_file(folder / "part/samples_piqa_prism.jsonl"), samples);
  EXPECT_FALSE(std::filesystem::exists(folder / "part/samples_piqa.jsonl"));
  expect_sentence(ask({"piqa"}, question_folder(), {"--out", "part", "--limit", "3"}), 2,
                  {"expected results of the same settings in part", "limit 0 instead of 3"});
  const std::vector<std::string> sparse = {"--out", "settings", "--prefill", "spectral"};
  ASSERT_EQ(ask({"piqa"}, question_folder(), sparse).status, 0);
  auto changed = sparse;
  changed.insert(changed.end(), {"--prefill-set", "p=0.5"});
  expect_sentence(ask({"piqa"}, question_folder(), changed), 2, {"in settings; found p 0.95 instead of 0.5;"});
}

TEST(EvalTasks, RefuseAnswersThatMayBeAnotherModels) {
  const auto folder = Workshop::folder();
  ASSERT_EQ(ask({"piqa"}, question_folder(), {"--out", "own"}).status, 0);
  const auto settings = read_file(folder / "own/settings.json"),
             samples = read_file(folder / "own/samples_piqa_prism.jsonl");
  auto moved = Json::parse(settings);
  moved["model"] = "elsewhere/trained";
  write_file(folder / "own/settings.json", moved.dump());
  EXPECT_EQ(ask({"piqa"}, question_folder(), {"--out", "own"}).status, 0) << "fingerprints tell the model";
  moved["fingerprint"]["weights"] = "0";
  write_file(folder / "own/settings.json", moved.dump());
  expect_sentence(ask({"piqa"}, question_folder(), {"--out", "own"}), 2, {"found those of other weights"});
  write_file(folder / "own/settings.json", "{\"colour\": \"blue\"}");
  expect_sentence(ask({"piqa"}, question_folder(), {"--out", "own"}), 2, {"expected the settings of an evaluation"});
  std::filesystem::remove(folder / "own/settings.json");
  expect_sentence(ask({"piqa"}, question_folder(), {"--out", "own"}), 2,
                  {"expected settings.json, which names the model, beside"});
  std::filesystem::remove(folder / "own/results_prism.json");
  expect_sentence(ask({"piqa"}, question_folder(), {"--out", "own"}), 2, {"beside samples_piqa_prism.jsonl"});
  write_file(folder / "own/settings.json", settings);
  const auto seconds = read_file(folder / "own/seconds_prism.json");
  write_file(folder / "own/seconds_prism.json", "[]");
  expect_sentence(ask({"piqa"}, question_folder(), {"--out", "own"}), 2, {"seconds_prism.json: expected an object"});
  write_file(folder / "own/seconds_prism.json", seconds);
  for (const auto& [from, to] : {std::pair{"\"acc\":1", "\"acc\":0"}, {"[[\"-", "[[\""}}) {
    auto edited = samples;
    edited.replace(edited.find(from), std::string(from).size(), to);
    write_file(folder / "own/samples_piqa_prism.jsonl", edited);
    expect_sentence(ask({"piqa"}, question_folder(), {"--out", "own"}), 2, {"expected the answers to item"});
  }
}

TEST(EvalTasks, StateTheDensityOfASelector) {
  const std::vector<std::string> sparse = {"--prefill", "random",        "--prefill-set",
                                           "share=0.2", "--prefill-set", "block_size=32"};
  auto words = sparse;
  words.insert(words.end(), {"--out", "sparse"});
  const auto text = ask({"piqa"}, question_folder(), words);
  ASSERT_EQ(text.status, 0) << text.err;
  EXPECT_NE(text.out.find("density"), std::string::npos) << text.out;
  const auto json = Json::parse(read_file(Workshop::folder() / "sparse/results_prism.json"));
  EXPECT_GT(json["density"]["piqa"].get<double>(), 0);
  EXPECT_LE(json["density"]["piqa"].get<double>(), 1);
  EXPECT_EQ(json["config"]["selector"], "random");
  const auto again = ask({"piqa"}, question_folder(), words);
  EXPECT_EQ(Json::parse(read_file(Workshop::folder() / "sparse/results_prism.json")), json) << "read back";
  const auto density = fmt::format("random, density {:.3f}", json["density"]["piqa"].get<double>());
  EXPECT_NE(text.out.find(density + ";"), std::string::npos) << text.out;
  EXPECT_NE(again.out.find(density + "\n"), std::string::npos) << again.out;
  auto as_json = words;
  as_json.emplace_back("--json");
  const auto prefill = Json::parse(ask({"piqa"}, question_folder(), as_json).out)["prefill"];
  EXPECT_EQ(prefill["selector"], "random");
  EXPECT_EQ(prefill["settings"]["share"], 0.2);
  EXPECT_EQ(prefill["density"], json["density"]["piqa"]);
  EXPECT_FALSE(prefill.contains("attend_ms")) << "not known of an earlier call";
  const auto report = run({"report", "--evaluation", "sparse", "--out", "sparse.html"});
  for (const char* shown : {"random share=0.2 block_size=32", "Seconds"})
    EXPECT_NE(report.out.find(shown), std::string::npos) << shown << " in " << report.out;
  auto samples = read_file(Workshop::folder() / "sparse/samples_piqa_prism.jsonl");
  write_file(Workshop::folder() / "sparse/samples_piqa_prism.jsonl", samples.substr(0, samples.find('\n') + 1));
  expect_sentence(run({"report", "--evaluation", "sparse", "--out", "sparse.html"}), 2,
                  {"expected the answers to 30 items", "found 1"});
}

TEST(EvalTasks, CompareAModelWithItself) {
  for (const auto& against : {std::vector<std::string>{"--against", trained()}, {"--against-prefill", "dense"}}) {
    const auto text = ask({"piqa"}, question_folder(), against);
    ASSERT_EQ(text.status, 0) << text.err;
    for (const char* words : {"the first minus the second", "acc            +0.0000",
                              "0 better, 0 worse, sign test: p = 1", "KL(second || first) of"})
      EXPECT_NE(text.out.find(words), std::string::npos) << words << " in " << text.out;
    auto words = against;
    words.emplace_back("--json");
    const auto lines = lines_of(ask({"piqa"}, question_folder(), words));
    ASSERT_EQ(lines.size(), 3u);
    EXPECT_EQ(lines[2]["differences"]["piqa"]["acc"]["difference"], 0);
    EXPECT_EQ(lines[2]["differences"]["piqa"]["divergence"]["p99"], 0);
  }
}

TEST(EvalTasks, RefuseWrongInputWithASentence) {
  const auto& data = question_folder();
  expect_sentence(ask({"piqua"}, data), 2, {"did you mean piqa?"});
  expect_sentence(run({"eval", "--data", data, "--task", "piqua", trained()}), 2, {"did you mean piqa?"});
  expect_sentence(ask({"piqa", "hellaswag"}, data + "/prompts.jsonl"), 2, {"expected a folder in --data for 2 tasks"});
  expect_sentence(ask({"multiple_choice", data + "/prompts.jsonl"}, data), 2,
                  {"expected the names of tasks after --task", "found the path", "--data"});
  expect_sentence(ask({"piqa", "perplexity"}, data), 2, {"expected perplexity without other tasks"});
  expect_sentence(ask({"boolq"}, data), 2, {"expected boolq/dev.jsonl or boolq/val.jsonl in questions"});
  expect_sentence(ask({"piqa"}, "nowhere"), 2, {"piqa/valid.jsonl in nowhere"});
  expect_sentence(ask({"multiple_choice"}, data + "/prompts.jsonl"), 2,
                  {"prompts.jsonl, line 1: expected a row with the member query"});
  expect_sentence(run({"eval", trained(), "--task", "piqa"}), 2, {"expected the files of piqa"});
  expect_sentence(run({"eval", trained(), "--task", "needle_grid", "--lengths", "32"}), 2,
                  {"expected essays", "found no folder; name one with --data"});
  expect_sentence(run({"eval", trained(), "text.txt", "--task", "piqa", "--data", data}), 2,
                  {"expected no file after the model"});
  expect_sentence(run({"eval", trained()}), 2, {"expected files to read; found none"});
  expect_sentence(run({"eval", trained(), "text.txt", "--data", data}), 2,
                  {"--data", "belongs to tasks that ask questions"});
  expect_sentence(ask({"piqa"}, data, {"--stride", "3"}), 2, {"--stride", "belongs to perplexity"});
  expect_sentence(ask({"piqa"}, data, {"--lengths", "16"}), 2,
                  {"--lengths", "belongs to tasks whose prompts are made (ruler, needle_grid)"});
  expect_sentence(ask({"piqa"}, data, {"--shots-from", data + "/own.jsonl"}), 2, {"expected the number of shots"});
  expect_sentence(ask({"piqa"}, data, {"--against-prefill-set", "p=1"}), 2, {"expected --against-prefill with"});
  expect_sentence(ask({"ruler_vt"}, "nowhere"), 2, {"the sources of ruler_vt; found nothing at nowhere"});
  expect_sentence(ask({"ruler_vt"}, data, {"--words", "words.txt"}), 2, {"expected --words with ruler_cwe alone"});
  expect_sentence(ask({"ruler_vt"}, data, {"--depths", "0", "50"}), 2, {"expected --depths with needle_grid alone"});
  expect_sentence(ask({"ruler_vt"}, data, {"--limit", "3"}), 2, {"expected --samples for ruler_vt"});
  expect_sentence(ask({"ruler_vt"}, data, {"--shots", "2", "--shots-from", data + "/own.jsonl"}), 2,
                  {"expected no --shots with ruler_vt"});
  write_file(Workshop::folder() / "odd.jsonl", "{\"query\": \"the\", \"choices\": \"ab\", \"gold\": 0}\n");
  expect_sentence(ask({"multiple_choice"}, "odd.jsonl"), 2,
                  {"odd.jsonl, line 1", "expected a list of texts as choices"});
  write_file(Workshop::folder() / "odd.jsonl", "{\"query\": \"the\", \"choices\": [\"ab\"], \"gold\": 0}\n");
  expect_sentence(ask({"multiple_choice"}, "odd.jsonl"), 2, {"odd.jsonl, line 1", "expected two or more choices"});
  write_file(Workshop::folder() / "odd.jsonl", "{\"prompt\": \"the\", \"targets\": [\"\"]}\n");
  expect_sentence(ask({"generate"}, "odd.jsonl"), 2, {"odd.jsonl, line 1", "expected targets of at least one letter"});
  write_file(Workshop::folder() / "odd.jsonl", "{\"prompt\": \"the\", \"targets\": \"a\", \"stop\": \"\"}\n");
  expect_sentence(ask({"generate"}, "odd.jsonl"), 2, {"odd.jsonl, line 1", "expected stop texts of at least one"});
  expect_sentence(ask({"multiple_choice", "piqa"}, "-"), 2, {"expected one task with --data -"});
  expect_sentence(run({"eval", "--task", "piqa"}), 2, {"expected MODEL; found none"});
  expect_sentence(run({"eval", "--task", "piqa", "one", "more"}), 2,
                  {"expected MODEL first, before the options", "more after --task, which name no tasks"});
  write_file(Workshop::folder() / "odd.txt", "words\n");
  expect_sentence(ask({"wikitext_halves"}, "odd.txt"), 2, {"a context of at least 512 tokens", "found 32"});
  write_file(Workshop::folder() / "odd.jsonl", "{\"query\": \"the\", \"choices\": [\"\", \"a\"], \"gold\": 0}\n");
  expect_sentence(ask({"multiple_choice"}, "odd.jsonl"), 2, {"odd.jsonl, line 1", "choices of at least one character"});
  EXPECT_EQ(run({"eval", "--data", data, "--threads", "1", "--limit", "2", "--task", "piqa", trained()}).status, 0);
  expect_sentence(ask({"piqa"}, data, {"--shots", "2"}), 2, {"expected the file of the shots"});
  expect_sentence(ask({"piqa"}, data, {"--against", trained(), "--out", "both"}), 2, {"expected --out for one model"});
  expect_sentence(ask({"piqa"}, data, {"--against", trained(), "--against-prefill", "dense"}), 2, {"found both"});
  expect_sentence(ask({"piqa"}, data, {"--against-prefill", "spectrl"}), 2, {"spectral"});
  expect_sentence(ask({"generate"}, data + "/prompts.jsonl", {"--apply-chat-template"}), 2, {"chat template"});
  expect_sentence(ask({"ruler_vt"}, data, {"--lengths", "16"}), 2, {"expected a length that holds the smallest"});
  expect_sentence(ask({"ruler_vt"}, data, {"--lengths", "1M"}), 2, {"expected lengths up to", "found 1000000"});
  expect_sentence(ask({"ruler_vt"}, data, {"--lengths", "long"}), 2, {"--lengths", "long"});
}

}  // namespace
}  // namespace prism
