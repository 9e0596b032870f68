#include "prism/evaluation/tasks/samples.h"

#include <fcntl.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <string>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/text/printable.h"
#include "prism/evaluation/tasks/row_values.h"

namespace prism {
namespace {

/// A number as Python prints it.
std::string python_number(double value) {
  return fmt::format("{}", value);
}

bool is_whole_text(const Task& task) {
  return task.kind == TaskKind::rolling || task.kind == TaskKind::halves;
}

Json response_of(const Task& task, const Answer& answer) {
  if (task.kind == TaskKind::generation) return Json::array({answer.text});
  if (is_whole_text(task)) return Json::array({python_number(answer.log_likelihood)});
  return Json::array({python_number(answer.log_likelihood), answer.is_greedy ? "True" : "False"});
}

Answer answer_from(const Task& task, const Json& response) {
  if (task.kind == TaskKind::generation) return {.text = response.at(0).get<std::string>()};
  Answer answer{.is_greedy = true, .text = {}};
  const auto number = response.at(0).get<std::string>();
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), answer.log_likelihood);
  if (error != std::errc() || end != number.data() + number.size()) throw std::invalid_argument("not a number");
  if (!is_whole_text(task)) answer.is_greedy = response.at(1).get<std::string>() == "True";
  return answer;
}

std::string target_of(const Task& task, const TaskItem& item) {
  if (task.kind == TaskKind::generation) return to_text(Json(item.targets));
  if (task.reads_texts || task.kind == TaskKind::halves) return "";
  return task.kind == TaskKind::choice ? std::to_string(item.gold) : item.queries.at(0).continuation;
}

Json sample_row(const Task& task, size_t index, const TaskItem& item, const ItemAnswers& answers) {
  Json row = {{"doc_id", index}, {"doc", item.row}, {"target", target_of(task, item)}};
  Json filtered = Json::array();
  for (size_t i = 0; i < item.queries.size(); ++i) {
    const auto& query = item.queries[i];
    auto& arguments = row["arguments"][fmt::format("gen_args_{}", i)];
    if (task.reads_texts || task.kind == TaskKind::halves) {
      arguments = Json::object();  // the text is in its file
    } else if (is_whole_text(task)) {
      arguments = {{"arg_0", query.continuation}};
    } else if (task.kind == TaskKind::generation) {
      arguments = {{"arg_0", query.context}, {"arg_1", {{"until", item.stops}, {"do_sample", false}}}};
    } else {
      arguments = {{"arg_0", query.context}, {"arg_1", query.continuation}};
    }
    const auto response = response_of(task, answers.answers.at(i));
    row["resps"].push_back(Json::array({response}));
    filtered.push_back(task.kind == TaskKind::generation ? response.at(0) : response);
  }
  row["filtered_resps"] = filtered;
  row["filter"] = "none";
  row["metrics"] = task.figures;
  row["cut"] = answers.cut;
  row["tokens"] = answers.tokens;
  if (answers.visible_blocks > 0)
    row["prefill"] = {{"kept_blocks", answers.kept_blocks}, {"visible_blocks", answers.visible_blocks}};
  const auto scores = item_scores(task, item, answers);
  for (size_t i = 0; i < scores.size(); ++i) row[task.figures[i]] = scores[i];
  return row;
}

ItemAnswers answers_from(const Task& task, const Json& row) {
  ItemAnswers answers{.answers = {}, .cut = row.at("cut").get<int64_t>(), .tokens = row.at("tokens").get<int64_t>()};
  for (const auto& each : row.at("resps")) answers.answers.push_back(answer_from(task, each.at(0)));
  if (const auto blocks = row.find("prefill"); blocks != row.end()) {
    answers.kept_blocks = blocks->at("kept_blocks").get<int64_t>();
    answers.visible_blocks = blocks->at("visible_blocks").get<int64_t>();
  }
  return answers;
}

}  // namespace

SampleFile::SampleFile(std::filesystem::path path, Task task, std::span<const TaskItem> items)
    : path_(std::move(path)), task_(std::move(task)), items_(items) {
  if (!is_there(path_)) return;
  const std::string text = read_file(path_);
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const auto place = fmt::format("{}, line {}", plain_line(path_.string()), answers_.size() + 1);
    const Json row = parse_json(text.substr(begin, end - begin), place);
    bool is_own = answers_.size() < items_.size() && row.is_object() && row.contains("doc") && row.contains("resps");
    is_own = is_own && row["doc"] == items_[answers_.size()].row;
    try {
      if (is_own) answers_.push_back(answers_from(task_, row));
    } catch (const std::exception&) {
      is_own = false;
    }
    PRISM_CHECK(is_own && answers_.back().answers.size() == items_[answers_.size() - 1].queries.size(), kEvaluation,
                "{}: expected the answers to item {} of {}; found others; name another folder with --out.", place,
                ends_.size(), task_.name);
    ends_.push_back(end + 1);
  }
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
      answers.assign(file->answers().begin(), file->answers().begin() + static_cast<std::ptrdiff_t>(end));
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
    for (const auto& figure : each.figures) {
      add(row, figure);
      json["higher_is_better"][name][figure.name] = !is_less_better(figure.name);
    }
    json["results"][name] = row;
    json["n-shot"][name] = each.shots;
    json["n-samples"][name] = {{"effective", each.items}};
    json["cut"][name] = each.cut;
    json["density"][name] = each.density;
  }
  for (const auto& [name, figure] : groups_of(tasks)) {
    Json row = {{"alias", name}};
    add(row, figure);
    json["groups"][name] = json["results"][name] = row;
    auto& parts = json["group_subtasks"][name] = Json::array();
    for (const auto& each : tasks)
      if (each.task.group == name) parts.push_back(each.task.name);
  }
  json["config"] = settings;
  return json;
}

}  // namespace prism
