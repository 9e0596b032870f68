#include "prism/evaluation/tasks/task.h"

#include <algorithm>
#include <array>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/text/blanks.h"
#include "prism/core/text/names.h"
#include "prism/core/text/printable.h"
#include "prism/evaluation/ruler/ruler.h"
#include "prism/evaluation/tasks/row_values.h"
#include "prism/template/library/text_pieces.h"
#include "prism/template/values/characters.h"

namespace prism {
namespace {

/// Choices after one context.
TaskItem choose(const Json& row, const std::string& context, std::vector<std::string> choices, int64_t gold) {
  PRISM_CHECK(choices.size() >= 2, kEvaluation, "expected two or more choices; found {}; correct the row.",
              choices.size());
  PRISM_CHECK(gold >= 0 && gold < std::ssize(choices), kEvaluation,
              "expected a right answer among {} choices, numbered from 0; found {}; correct the row.", choices.size(),
              gold);
  TaskItem item{.row = row, .gold = gold, .choices = std::move(choices)};
  for (const auto& each : item.choices) item.queries.push_back({context, " " + each});
  return item;
}

TaskItem piqa(const Json& row) {
  return choose(row, fmt::format("Question: {}\nAnswer:", text_of(row, "goal")),
                {text_of(row, "sol1"), text_of(row, "sol2")}, number_of(row, "label"));
}

/// A context that ends in the beginning of a sentence in small letters, ctx_b of the original file, with a capital
/// letter, as the harness writes it.
std::string with_capital_beginning(const std::string& context) {
  constexpr std::string_view kEnds = ".!?";
  const auto end = context.find_last_of(kEnds);
  if (end == std::string::npos || end + 2 >= context.size() || context[end + 1] != ' ') return context;
  return context.substr(0, end + 2) + jinja::capitalized(std::string_view(context).substr(end + 2));
}

/// Rows of the original file, or with the whole context alone.
TaskItem hellaswag(const Json& row) {
  const auto context = row.contains("ctx_b") ? text_of(row, "ctx_a") + " " + jinja::capitalized(text_of(row, "ctx_b"))
                                             : with_capital_beginning(text_of(row, "ctx"));
  auto endings = list_of(row, "endings");
  for (auto& each : endings) each = without_wikihow_marks(each);
  return choose(row, without_wikihow_marks(text_of(row, "activity_label") + ": " + context), std::move(endings),
                number_of(row, "label"));
}

/// Rows of the original file, or with question, choices and the number of the right one.
TaskItem arc(const Json& row) {
  if (row.contains("gold"))
    return choose(row, text_of(row, "query") + "\nAnswer:", list_of(row, "choices"), number_of(row, "gold"));
  const auto& choices = member_of(row, "choices");
  const auto labels = list_of(choices, "label"), texts = list_of(choices, "text");
  PRISM_CHECK(labels.size() == texts.size(), kEvaluation,
              "expected as many labels as texts of choices; found {} and {}; correct the row.", labels.size(),
              texts.size());
  const auto gold = std::ranges::find(labels, text_of(row, "answerKey"));
  PRISM_CHECK(gold != labels.end(), kEvaluation,
              "expected an answerKey among the labels {}; found {}; correct the row.", plain_line(join_names(labels)),
              short_line(text_of(row, "answerKey"), 60));
  return choose(row, fmt::format("Question: {}\nAnswer:", text_of(row, "question")), texts, gold - labels.begin());
}

/// One continuation after two contexts.
TaskItem winogrande(const Json& row) {
  const auto sentence = text_of(row, "sentence"), answer = text_of(row, "answer");
  const auto gap = sentence.find('_');
  PRISM_CHECK(gap != std::string::npos, kEvaluation, "expected a sentence with a gap, _; found none; correct the row.");
  PRISM_CHECK(answer == "1" || answer == "2", kEvaluation, "expected the answer 1 or 2; found \"{}\"; correct the row.",
              short_line(answer, 60));
  const auto rest = fmt::format(" {}", jinja::stripped(std::string_view(sentence).substr(gap + 1)));
  TaskItem item{.row = row, .gold = answer == "2"};
  for (const char* option : {"option1", "option2"}) {
    item.choices.push_back(sentence.substr(0, gap) + text_of(row, option));
    item.queries.push_back({item.choices.back(), rest});
  }
  return item;
}

/// SuperGLUE's passages, which the harness reads, begin with the title; BoolQ's own have it beside them.
TaskItem boolq(const Json& row) {
  const auto title = row.contains("title") ? text_of(row, "title") + " -- " : std::string();
  const auto context =
      fmt::format("{}{}\nQuestion: {}?\nAnswer:", title, text_of(row, "passage"), text_of(row, "question"));
  const int64_t gold = row.contains("answer") ? truth_of(row, "answer") : number_of(row, "label");
  return choose(row, context, {"no", "yes"}, gold);
}

/// @param part  its name, which BLiMP's rows state.
TaskItem blimp(const Json& row, const std::string& part) {
  const auto stated = row.contains("UID") ? text_of(row, "UID") : part;
  PRISM_CHECK(stated == part, kEvaluation,
              "expected a row of BLiMP's part {}; found one of {}; name the file of the part.", part,
              short_line(stated, 60));
  return choose(row, "", {text_of(row, "sentence_good"), text_of(row, "sentence_bad")}, 0);
}

TaskItem lambada(const Json& row) {
  const auto text = text_of(row, "text");
  const auto space = text.rfind(' ');
  PRISM_CHECK(space != std::string::npos && space + 1 < text.size(), kEvaluation,
              "expected a text of several words that ends with a word; found \"{}\"; correct the row.",
              short_line(text, 60));
  return {.row = row, .queries = {{text.substr(0, space), text.substr(space)}}};
}

/// A text, of whose original form the words and bytes count. @param read  what the model reads.
TaskItem whole_text(const Json& row, const std::string& original, std::string read) {
  PRISM_CHECK(!jinja::stripped(original).empty(), kEvaluation, "expected text; found none; leave the text out.");
  TaskItem item{.row = row, .queries = {{"", std::move(read)}}};
  item.words = words_between_blanks(original);
  item.bytes = std::ssize(original);
  return item;
}

TaskItem wikitext(const Json& row) {
  const auto page = text_of(row, "page");
  return whole_text(row, page, without_wikitext_marks(page));
}

TaskItem book(const Json& row) {
  const auto page = text_of(row, "page");
  return whole_text(row, page, page);
}

/// A document of a user's texts, which may be white space alone.
TaskItem document(const Json& row) {
  const auto page = text_of(row, "page");
  TaskItem item{.row = row, .queries = {{"", page}}};
  item.words = count_words(page);
  item.bytes = std::ssize(page);
  return item;
}

/// A user's questions: query, choices, gold; the context is taken as it is written.
TaskItem multiple_choice(const Json& row) {
  const auto query = text_of(row, "query");
  const auto choices = list_of(row, "choices");
  PRISM_CHECK(std::ranges::none_of(choices, [](const std::string& choice) { return choice.empty(); }), kEvaluation,
              "expected choices of at least one character; found an empty one; correct the row.");
  return choose(row, query, choices, number_of(row, "gold"));
}

/// A user's prompts: prompt, targets (one or several), stop.
TaskItem generate_item(const Json& row) {
  TaskItem item{.row = row, .queries = {{text_of(row, "prompt"), ""}}};
  item.targets = texts_of(row, "targets");
  PRISM_CHECK(!item.targets.empty(), kEvaluation, "expected at least one of targets; found none; correct the row.");
  PRISM_CHECK(std::ranges::none_of(item.targets, is_blank), kEvaluation,
              "expected targets of at least one letter; found one without; correct the row.");
  if (row.contains("stop")) item.stops = texts_of(row, "stop");
  PRISM_CHECK(std::ranges::none_of(item.stops, [](const std::string& stop) { return stop.empty(); }), kEvaluation,
              "expected stop texts of at least one character; found an empty one; leave it out.");
  return item;
}

constexpr std::array kBlimpParts = {
    "adjunct_island",
    "anaphor_gender_agreement",
    "anaphor_number_agreement",
    "animate_subject_passive",
    "animate_subject_trans",
    "causative",
    "complex_NP_island",
    "coordinate_structure_constraint_complex_left_branch",
    "coordinate_structure_constraint_object_extraction",
    "determiner_noun_agreement_1",
    "determiner_noun_agreement_2",
    "determiner_noun_agreement_irregular_1",
    "determiner_noun_agreement_irregular_2",
    "determiner_noun_agreement_with_adj_2",
    "determiner_noun_agreement_with_adj_irregular_1",
    "determiner_noun_agreement_with_adj_irregular_2",
    "determiner_noun_agreement_with_adjective_1",
    "distractor_agreement_relational_noun",
    "distractor_agreement_relative_clause",
    "drop_argument",
    "ellipsis_n_bar_1",
    "ellipsis_n_bar_2",
    "existential_there_object_raising",
    "existential_there_quantifiers_1",
    "existential_there_quantifiers_2",
    "existential_there_subject_raising",
    "expletive_it_object_raising",
    "inchoative",
    "intransitive",
    "irregular_past_participle_adjectives",
    "irregular_past_participle_verbs",
    "irregular_plural_subject_verb_agreement_1",
    "irregular_plural_subject_verb_agreement_2",
    "left_branch_island_echo_question",
    "left_branch_island_simple_question",
    "matrix_question_npi_licensor_present",
    "npi_present_1",
    "npi_present_2",
    "only_npi_licensor_present",
    "only_npi_scope",
    "passive_1",
    "passive_2",
    "principle_A_c_command",
    "principle_A_case_1",
    "principle_A_case_2",
    "principle_A_domain_1",
    "principle_A_domain_2",
    "principle_A_domain_3",
    "principle_A_reconstruction",
    "regular_plural_subject_verb_agreement_1",
    "regular_plural_subject_verb_agreement_2",
    "sentential_negation_npi_licensor_present",
    "sentential_negation_npi_scope",
    "sentential_subject_island",
    "superlative_quantifiers_1",
    "superlative_quantifiers_2",
    "tough_vs_raising_1",
    "tough_vs_raising_2",
    "transitive",
    "wh_island",
    "wh_questions_object_gap",
    "wh_questions_subject_gap",
    "wh_questions_subject_gap_long_distance",
    "wh_vs_that_no_gap",
    "wh_vs_that_no_gap_long_distance",
    "wh_vs_that_with_gap",
    "wh_vs_that_with_gap_long_distance",
};

/// Those that read files, without BLiMP.
std::vector<Task> file_tasks() {
  using enum TaskKind;
  const std::vector<std::string> by_length = {"acc", "acc_norm", "acc_bytes"},
                                 perplexities = {"word_perplexity", "byte_perplexity", "bits_per_byte"};
  return {
      {.name = kPerplexity,
       .kind = windows,
       .figures = {"token_perplexity", "word_perplexity", "byte_perplexity", "bits_per_byte"},
       .item = document},
      {.name = "piqa",
       .files = {"piqa/valid.jsonl"},
       .figures = by_length,
       .item = piqa,
       .chance = 0.5,
       .has_label_file = true},
      {.name = "hellaswag",
       .files = {"hellaswag/hellaswag_val.jsonl"},
       .figures = by_length,
       .item = hellaswag,
       .chance = 0.25},
      {.name = "arc_easy",
       .files = {"arc_easy/arc_easy_test.jsonl", "arc_easy/ARC-Easy-Test.jsonl"},
       .figures = by_length,
       .item = arc,
       .chance = 0.25},
      {.name = "arc_challenge",
       .files = {"arc_challenge/arc_challenge_test.jsonl", "arc_challenge/ARC-Challenge-Test.jsonl"},
       .figures = by_length,
       .item = arc,
       .chance = 0.25},
      {.name = "winogrande", .files = {"winogrande/dev.jsonl"}, .figures = {"acc"}, .item = winogrande, .chance = 0.5},
      {.name = "boolq",
       .files = {"boolq/dev.jsonl", "boolq/val.jsonl"},
       .figures = {"acc"},
       .item = boolq,
       .chance = 0.5,
       .version = 2},
      {.name = "lambada_openai",
       .kind = completion,
       .files = {"lambada/lambada_test.jsonl"},
       .figures = {"perplexity", "acc"},
       .item = lambada},
      {.name = "wikitext",
       .kind = rolling,
       .files = {"wikitext-2/wiki.test.raw"},
       .figures = perplexities,
       .item = wikitext,
       .version = 2},
      {.name = "wikitext_halves",
       .kind = halves,
       .files = {"wikitext-2/wiki.test.raw"},
       .figures = {"token_perplexity"},
       .item = book},
      {.name = "books", .kind = rolling, .figures = perplexities, .item = book, .reads_texts = true},
      {.name = "multiple_choice", .figures = by_length, .item = multiple_choice},
      {.name = "generate", .kind = generation, .figures = {"exact_match", "contains"}, .item = generate_item},
  };
}

std::vector<Task> make_tasks() {
  auto tasks = file_tasks();
  for (const char* part : kBlimpParts)
    tasks.push_back({.name = std::string("blimp_") + part,
                     .group = "blimp",
                     .files = {fmt::format("blimp/{}.jsonl", part)},
                     .figures = {"acc"},
                     .item = [part](const Json& row) { return blimp(row, part); },
                     .chance = 0.5});
  for (auto& task : made_tasks()) tasks.push_back(std::move(task));
  for (auto& task : tasks)
    if (!task.group.empty()) task.parts = std::ranges::count(tasks, task.group, &Task::group);
  return tasks;
}

}  // namespace

const std::vector<Task>& all_tasks() {
  static const std::vector<Task> tasks = make_tasks();
  return tasks;
}

std::vector<std::string> task_names() {
  std::vector<std::string> names;
  for (const auto& task : all_tasks()) {
    if (!task.group.empty() && (names.empty() || std::find(names.begin(), names.end(), task.group) == names.end()))
      names.push_back(task.group);
    names.push_back(task.name);
  }
  return names;
}

std::vector<Task> find_tasks(const std::vector<std::string>& names, const std::vector<std::string>& others) {
  std::vector<Task> found;
  for (const auto& name : names) {
    bool is_known = false;
    for (const auto& task : all_tasks()) {
      if (task.name != name && task.group != name) continue;
      is_known = true;
      if (std::ranges::find(found, task.name, &Task::name) == found.end()) found.push_back(task);
    }
    if (is_known) continue;
    auto known = task_names(), shown = others;  // those that are shown are without the parts of groups
    known.insert(known.end(), others.begin(), others.end());
    const auto begins = std::ranges::find_if(known, [&](const std::string& each) { return each.starts_with(name); });
    const auto near = begins != known.end() && !name.empty() ? *begins : nearest_name(name, known);
    for (const auto& each : task_names())
      if (std::ranges::none_of(all_tasks(), [&](const Task& task) { return task.name == each && !task.group.empty(); }))
        shown.push_back(each);
    throw InputError(kEvaluation, fmt::format("expected a task that is one of {}, or a part of one; found \"{}\"; {}",
                                              join_names(shown), name,
                                              near.empty() ? "choose one of them." : "did you mean " + near + "?"));
  }
  return found;
}

std::string shot_text(const Task& task, const TaskItem& item) {
  const auto& query = item.queries.at(static_cast<size_t>(item.gold));
  const char* delimiter = task.kind == TaskKind::completion ? " " : "";
  return query.context + delimiter + query.continuation;
}

}  // namespace prism
