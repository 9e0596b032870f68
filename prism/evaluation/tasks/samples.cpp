#include "prism/evaluation/tasks/samples.h"

#include <fcntl.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/numbers/item_figure.h"
#include "prism/core/text/printable.h"
#include "prism/evaluation/tasks/row_values.h"

namespace prism {
namespace {

/// What every row begins with.
constexpr std::string_view kRowBeginning = "{\"doc_id\":0,";

/// A number as Python prints it: with a point, or an exponent.
std::string python_number(double value) {
  auto text = fmt::format("{}", value);
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
  return text;
}

Json response_of(const Task& task, const Answer& answer) {
  if (task.kind == TaskKind::generation) return Json::array({answer.text});
  if (task.is_text()) return Json::array({python_number(answer.log_likelihood)});
  return Json::array({python_number(answer.log_likelihood), answer.is_greedy ? "True" : "False"});
}

/// Logarithms of probabilities, rounded: a sum of them may exceed zero by this.
constexpr double kMostLogLikelihood = 1e-3;

/// Throws if a value in a file is not what prism writes.
void require(bool condition) {
  if (!condition) throw std::invalid_argument("not written by prism");
}

Answer parse_answer(const Task& task, const Json& response) {
  if (task.kind == TaskKind::generation) return {.text = response.at(0).get<std::string>()};
  Answer answer{.is_greedy = true, .text = {}};
  const auto number = response.at(0).get<std::string>();
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), answer.log_likelihood);
  require(error == std::errc() && end == number.data() + number.size() && std::isfinite(answer.log_likelihood) &&
          answer.log_likelihood <= kMostLogLikelihood);
  if (!task.is_text()) answer.is_greedy = response.at(1).get<std::string>() == "True";
  return answer;
}

std::string target_of(const Task& task, const TaskItem& item) {
  if (task.kind == TaskKind::generation) return to_text(Json(item.targets));
  if (task.names_file()) return "";
  return task.kind == TaskKind::choice ? std::to_string(item.gold) : item.queries.at(0).continuation;
}

/// What the model is asked, by query.
Json arguments_of(const Task& task, const TaskItem& item) {
  Json all = Json::object();
  for (size_t i = 0; i < item.queries.size(); ++i) {
    const auto& query = item.queries[i];
    auto& arguments = all[fmt::format("gen_args_{}", i)];
    if (task.names_file()) {
      arguments = Json::object();  // the row has a fingerprint of the text
    } else if (task.is_text()) {
      arguments = {{"arg_0", query.continuation}};
    } else if (task.kind == TaskKind::generation) {
      arguments = {{"arg_0", query.context}, {"arg_1", {{"until", item.stops}, {"do_sample", false}}}};
    } else {
      arguments = {{"arg_0", query.context}, {"arg_1", query.continuation}};
    }
  }
  return all;
}

Json sample_row(const Task& task, size_t index, const TaskItem& item, const ItemAnswers& answers) {
  Json row = {
      {"doc_id", index}, {"doc", item.row}, {"target", target_of(task, item)}, {"arguments", arguments_of(task, item)}};
  Json filtered = Json::array();
  for (const auto& answer : answers.answers) {
    const auto response = response_of(task, answer);
    row["resps"].push_back(Json::array({response}));
    filtered.push_back(task.kind == TaskKind::generation ? response.at(0) : response);
  }
  row["filtered_resps"] = filtered;
  row["filter"] = "none";
  row["metrics"] = task.figures;
  row["cut"] = answers.cut;
  row["tokens"] = answers.tokens;
  if (const auto& kept = answers.kept; kept.visible_blocks > 0) {
    row["prefill"] = {{"kept_blocks", kept.kept_blocks}, {"visible_blocks", kept.visible_blocks}};
    if (kept.recall_queries > 0)
      row["prefill"].update({{"recall_sum", kept.recall_sum}, {"recall_queries", kept.recall_queries}});
  }
  const auto scores = item_scores(task, item, answers), units = item_units(task, item, answers);
  for (size_t i = 0; i < scores.size(); ++i)
    row[task.figures[i]] = task.is_text() ? Json::array({scores[i], units[i]}) : Json(scores[i]);
  return row;
}

ItemAnswers parse_answers(const Task& task, const Json& row) {
  ItemAnswers answers;
  const auto count = [](const Json& value) {
    require(value.is_number_integer() && value.get<int64_t>() >= 0);
    return value.get<int64_t>();
  };
  answers.cut = count(row.at("cut"));
  answers.tokens = count(row.at("tokens"));
  for (const auto& each : row.at("resps")) answers.answers.push_back(parse_answer(task, each.at(0)));
  if (const auto blocks = row.find("prefill"); blocks != row.end()) {
    answers.kept = {.kept_blocks = count(blocks->at("kept_blocks")),
                    .visible_blocks = count(blocks->at("visible_blocks"))};
    if (blocks->contains("recall_queries")) {
      answers.kept.recall_sum = blocks->at("recall_sum").get<double>();
      answers.kept.recall_queries = count(blocks->at("recall_queries"));
    }
  }
  return answers;
}

/// Drops the figure of a group from results, because one of its parts has changed.
void drop_group(Json& results, const std::string& group) {
  for (const auto* member : {"results", "groups", "group_subtasks", "versions", "density", "recall"})
    if (results.contains(member)) results[member].erase(group);
}

}  // namespace

SampleFile::SampleFile(std::filesystem::path path, Task task, std::span<const TaskItem> items)
    : path_(std::move(path)), task_(std::move(task)), items_(items) {
  if (!is_there(path_)) return;
  const auto name = plain_line(path_.string());
  PRISM_CHECK(
      !std::filesystem::is_symlink(path_), kEvaluation,
      "expected {} to be a file of this evaluation; found a link; remove it, or name another folder with --out.", name);
  const std::string text = read_file(path_);
  size_t begin = 0;
  for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const auto place = fmt::format("{}, line {}", name, answers_.size() + 1);
    const Json row = parse_json(text.substr(begin, end - begin), place);
    const size_t number = answers_.size();
    bool is_own = false;
    try {
      if (number < items_.size() && row.at("doc") == items_[number].row &&
          row.at("arguments") == arguments_of(task_, items_[number])) {
        answers_.push_back(parse_answers(task_, row));
        is_own = answers_.back().answers.size() == items_[number].queries.size() &&
                 row == sample_row(task_, number, items_[number], answers_.back());
      }
    } catch (const std::exception&) {
      is_own = false;
    }
    PRISM_CHECK(is_own, kEvaluation,
                "{}: expected the answers to item {} of {}; found different ones; name another folder with --out.",
                place, number, task_.name);
    ends_.push_back(end + 1);
  }
  // A row that was cut short is dropped, but not the text of another program.
  PRISM_CHECK(begin == text.size() || !answers_.empty() ||
                  std::string_view(kRowBeginning).starts_with(text.substr(0, kRowBeginning.size())),
              kEvaluation, "expected {} to hold answers to {}; found another text; name another folder with --out.",
              name, task_.name);
  truncate(answers_.size());
}

void SampleFile::truncate(size_t count) {
  answers_.resize(count);
  ends_.resize(count);
  if (is_there(path_)) std::filesystem::resize_file(path_, count == 0 ? 0 : ends_.back());
}

void SampleFile::append(std::span<const ItemAnswers> answers) {
  std::string rows;
  uint64_t end = ends_.empty() ? 0 : ends_.back();
  for (const auto& each : answers) {
    const size_t index = answers_.size();
    const auto row = to_text(sample_row(task_, index, items_[index], each)) + "\n";
    rows += row;
    ends_.push_back(end += row.size());
    answers_.push_back(each);
  }
  const auto file = open_output(path_, O_WRONLY | O_APPEND, kEvaluation);
  prism::append(file, rows, path_, kEvaluation);
}

std::vector<ItemAnswers> answer_all(TaskModel& model, const Task& task, std::span<const TaskItem> items,
                                    SampleFile* file, const Scorer::OnStep& on_step,
                                    const std::function<void(int64_t)>& on_batch) {
  std::vector<ItemAnswers> answers;
  while (answers.size() < items.size()) {
    const auto batch = next_items(items.subspan(answers.size()));
    const size_t end = answers.size() + batch.size();
    if (file != nullptr && file->answers().size() >= end) {
      const auto known = std::span(file->answers()).subspan(answers.size(), batch.size());
      answers.insert(answers.end(), known.begin(), known.end());
    } else {
      // A batch that was written in part is computed again as a whole.
      if (file != nullptr) file->truncate(answers.size());
      const auto found = model.answer(task, batch, on_step);
      if (file != nullptr) file->append(found);
      answers.insert(answers.end(), found.begin(), found.end());
    }
    if (on_batch) on_batch(static_cast<int64_t>(end));
  }
  return answers;
}

std::vector<std::pair<std::string, Figure>> groups_of(const std::vector<TaskFigures>& tasks) {
  std::map<std::string, std::vector<Figure>> parts;
  std::vector<std::pair<std::string, Figure>> groups;
  for (const auto& each : tasks) {
    if (each.task.group.empty()) continue;
    auto& figures = parts[each.task.group];
    figures.push_back(each.figures.at(0));
    if (std::ssize(figures) == each.task.parts) groups.emplace_back(each.task.group, group_figure(figures));
  }
  return groups;
}

Json results_to_json(const std::vector<TaskFigures>& tasks, const Json& settings, const Json& before) {
  Json json = before.is_object() ? before : Json{{"results", Json::object()}};
  const auto add = [](Json& row, const Figure& figure) {
    row[figure.name + ",none"] = figure.value;
    row[figure.name + "_stderr,none"] = std::isnan(figure.standard_error) ? Json("N/A") : Json(figure.standard_error);
  };
  for (const auto& each : tasks) {
    const auto& name = each.task.name;
    Json row = {{"alias", name}, {"sample_len", each.items}};
    json["versions"][name] = each.task.version;
    json["configs"][name] = {
        {"task", name}, {"num_fewshot", each.shots}, {"metadata", {{"version", each.task.version}}}};
    for (const auto& figure : each.figures) {
      add(row, figure);
      json["higher_is_better"][name][figure.name] = !is_less_better(figure.name);
    }
    if (json["results"].contains(name) && json["results"][name] != row) drop_group(json, each.task.group);
    json["results"][name] = row;
    json["n-shot"][name] = each.shots;
    json["n-samples"][name] = {{"effective", each.items}};
    json["cut"][name] = each.cut;
    json["density"][name] = each.kept.density();
    if (each.kept.recall_queries > 0) json["recall"][name] = each.kept.recall();
  }
  for (const auto& [name, figure] : groups_of(tasks)) {
    int64_t items = 0;
    KeptCounts kept;
    auto& parts = json["group_subtasks"][name] = Json::array();
    for (const auto& each : tasks) {
      if (each.task.group != name) continue;
      parts.push_back(each.task.name);
      items += each.items;
      kept += each.kept;
      json["versions"][name] = each.task.version;
    }
    json["density"][name] = kept.density();
    if (kept.recall_queries > 0) json["recall"][name] = kept.recall();
    Json row = {{"alias", name}, {"sample_len", items}};
    add(row, figure);
    json["groups"][name] = json["results"][name] = row;
  }
  json["config"] = settings;
  return json;
}

}  // namespace prism
