#include "prism/report/evaluation/evaluation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <span>
#include <sstream>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "prism/core/files.h"
#include "prism/core/numbers/item_figure.h"
#include "prism/core/random.h"
#include "prism/core/statistics.h"
#include "prism/core/text/names.h"
#include "prism/core/text/printable.h"
#include "prism/report/draw/number_text.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

constexpr const char *kReport = "report", *kGrid = "needle_grid", *kPerplexity = "perplexity";
constexpr std::string_view kSuffix = ",none", kErrorSuffix = "_stderr,none";
constexpr NumberStyle kValue = {4, false}, kSigned = {4, true};

/// The rows of a task's samples file; none if it is not there.
/// @param results  of all tasks. @throws InputError for another number of rows than they state.
std::vector<Json> samples_of(const fs::path& folder, const std::string& task, const Json& results) {
  const auto path = folder / fmt::format("samples_{}_prism.jsonl", task);
  if (!is_there(path)) return {};
  std::istringstream stream(read_file(path));
  std::vector<Json> rows;
  for (std::string line; std::getline(stream, line);)
    rows.push_back(parse_json(line, fmt::format("{}, line {}", plain_line(path.string()), rows.size() + 1)));
  const auto items = results.at(task).at("sample_len").get<int64_t>();
  PRISM_CHECK(std::ssize(rows) == items, kReport,
              "--evaluation: expected the answers to {} items in {}; found {}; finish the evaluation, or restore the "
              "file.",
              items, plain_line(path.string()), rows.size());
  return rows;
}

/// Of one figure. The rows of texts state units, too.
ItemScores scores_of(const std::vector<Json>& rows, const std::string& figure) {
  ItemScores items;
  for (const auto& row : rows) {
    const auto& value = row.at(figure);
    items.scores.push_back(value.is_array() ? value.at(0).get<double>() : value.get<double>());
    items.units.push_back(value.is_array() ? value.at(1).get<double>() : 1);
  }
  return items;
}

std::string label_of(const Json& config) {
  auto label = last_name(config.at("model").get<std::string>());
  const auto selector = config.at("selector").get<std::string>();
  if (selector == "dense") return label;
  label += ", " + selector;
  for (const auto& change : config.value("selector_changes", Json::array()))
    label += " " + plain_line(change.get<std::string>());
  return label;
}

/// Reads the folder of one model.
class FolderReader {
 public:
  explicit FolderReader(const fs::path& folder)
      : folder_(folder),
        json_(parse_json(read_file(folder / "results_prism.json"),
                         plain_line((folder / "results_prism.json").string()))) {}

  EvaluatedModel read() {
    EvaluatedModel model{.label = label_of(json_.at("config")),
                         .context = json_.at("config").value("context", int64_t{0}),
                         .figures = {},
                         .density = {},
                         .recall = {},
                         .seconds = {},
                         .grid = {}};
    std::set<std::string> hidden;  // parts that their group stands for
    if (json_.contains("group_subtasks"))
      for (const auto& [group, names] : json_["group_subtasks"].items())
        if (std::ssize(names) > kMostPartsShown)
          for (const auto& name : names) hidden.insert(name.get<std::string>());
    for (const auto& [task, row] : json_.at("results").items())
      if (!hidden.contains(task)) add_figures(model, task, row);
    PRISM_CHECK(!model.figures.empty(), kReport,
                "--evaluation: expected results in {}; found none; name another folder.", plain_line(folder_.string()));
    const auto add = [&](const Json& file, const char* member, std::map<std::string, double>& values) {
      if (!file.contains(member)) return;
      for (const auto& [task, value] : file[member].items())
        if (!hidden.contains(task)) values[task] = value.get<double>();
    };
    add(json_, "density", model.density);
    add(json_, "recall", model.recall);
    const auto timings = folder_ / "seconds_prism.json";
    if (is_there(timings)) {
      Json all = {{"seconds", parse_json(read_file(timings), plain_line(timings.string()))}};
      add_groups(all["seconds"]);
      add(all, "seconds", model.seconds);
    }
    add_grid(model);
    return model;
  }

 private:
  /// Adds the sums over the parts of groups.
  void add_groups(Json& seconds) const {
    if (!json_.contains("group_subtasks")) return;
    for (const auto& [group, names] : json_["group_subtasks"].items()) {
      double sum = 0;
      for (const auto& name : names) sum += seconds.value(name.get<std::string>(), 0.0);
      seconds[group] = sum;
    }
  }

  std::vector<std::string> parts_of(const std::string& task) const {
    if (!json_.contains("group_subtasks") || !json_["group_subtasks"].contains(task)) return {task};
    return json_["group_subtasks"][task].get<std::vector<std::string>>();
  }

  void add_figures(EvaluatedModel& model, const std::string& task, const Json& row) {
    std::vector<std::vector<Json>> samples;
    uint64_t count = 0;
    auto hash = windows_hash(task);
    for (const auto& part : parts_of(task)) {
      samples.push_back(samples_of(folder_, part, json_.at("results")));
      for (const auto& sample : samples.back()) {
        const auto question = sample.at("doc").dump() + sample.at("arguments").dump();
        hash = mix64(hash + hash_bytes(std::as_bytes(std::span(question))));
      }
      count += samples.back().size();
    }
    for (const auto& [key, value] : row.items()) {
      if (!key.ends_with(kSuffix) || key.ends_with(kErrorSuffix)) continue;
      if (value.is_null()) continue;  // it is not defined, e.g. the perplexity per word of a text without words
      EvaluatedFigure figure{.task = task,
                             .figure = key.substr(0, key.size() - kSuffix.size()),
                             .value = value.get<double>(),
                             .scores = {},
                             .items = {}};
      const auto& error = row.at(figure.figure + std::string(kErrorSuffix));
      figure.has_error = error.is_number();
      if (figure.has_error) figure.error = error.get<double>();
      for (const auto& part : samples) figure.scores.push_back(scores_of(part, figure.figure));
      PRISM_CHECK(!figure.has_error || figure.error >= 0, kReport,
                  "--evaluation: expected standard errors of 0 or more in {}; found {}; name another folder.",
                  plain_line(folder_.string()), figure.error);
      if (count > 0) figure.items = fmt::format("{} {:016x}", count, hash);
      model.figures.push_back(std::move(figure));
    }
  }

  /// Of the windows that a user chose for a text.
  uint64_t windows_hash(const std::string& task) const {
    const auto& config = json_["config"];
    if (task != kPerplexity || !config.contains("window")) return 0;
    const auto windows = config["window"].dump() + " " + config.at("stride").dump();
    return hash_bytes(std::as_bytes(std::span(windows)));
  }

  void add_grid(EvaluatedModel& model) {
    std::map<std::pair<int64_t, int64_t>, std::vector<double>> cells;
    if (!json_.at("results").contains(kGrid)) return;
    for (const auto& sample : samples_of(folder_, kGrid, json_["results"]))
      cells[{sample.at("doc").at("length").get<int64_t>(), sample.at("doc").at("depth").get<int64_t>()}].push_back(
          sample.at("contains").get<double>());
    for (const auto& [place, scores] : cells) model.grid[place.first][place.second] = mean_of(scores);
  }

  fs::path folder_;
  Json json_;
};

/// The figure of this name that a model has; null if it has none.
const EvaluatedFigure* find_figure(const EvaluatedModel& model, const EvaluatedFigure& wanted) {
  const auto found = std::ranges::find_if(model.figures, [&](const EvaluatedFigure& each) {
    return each.task == wanted.task && each.figure == wanted.figure;
  });
  return found == model.figures.end() ? nullptr : &*found;
}

/// All figures that some model has, in the order of the first models.
std::vector<EvaluatedFigure> all_figures(const EvaluationRecords& records) {
  std::vector<EvaluatedFigure> all;
  std::set<std::pair<std::string, std::string>> known;
  for (const auto& model : records.models)
    for (const auto& figure : model.figures)
      if (known.emplace(figure.task, figure.figure).second) all.push_back(figure);
  return all;
}

/// Tasks of which not all models answered the same items, as far as these are known.
std::vector<std::string> tasks_of_other_items(const EvaluationRecords& records) {
  std::vector<std::string> tasks;
  std::map<std::string, std::string> items;  // of each task
  for (const auto& model : records.models)
    for (const auto& figure : model.figures) {
      if (figure.items.empty() || items.emplace(figure.task, figure.items).first->second == figure.items) continue;
      if (std::ranges::count(tasks, figure.task) == 0) tasks.push_back(figure.task);
    }
  return tasks;
}

Table figure_table(const EvaluationRecords& records) {
  Table table{"Tasks",
              {{"task"}, {"figure"}},
              {},
              {"± is the standard error over items; the 95% interval is about twice as wide to each side."}};
  for (const auto& model : records.models) table.columns.push_back({model.label, true});
  for (const auto& wanted : all_figures(records)) {
    auto& row = table.rows.emplace_back();
    row = {{wanted.task}, {wanted.figure}};
    for (const auto& model : records.models) {
      const auto* figure = find_figure(model, wanted);
      TableCell cell{kNoValue};
      if (figure != nullptr) cell.text = number_text(figure->value, kValue);
      if (figure != nullptr && figure->has_error) cell.spread = number_text(figure->error, kValue);
      row.push_back(cell);
    }
  }
  const auto differing = tasks_of_other_items(records);
  if (!differing.empty())
    table.notes.push_back(fmt::format(
        "Not all models answered the same items of {}, or read them in the same windows; these figures do not compare.",
        join_names(differing)));
  std::set<int64_t> contexts;
  for (const auto& model : records.models)
    if (model.context > 0) contexts.insert(model.context);
  if (contexts.size() > 1)
    table.notes.push_back(fmt::format("The models read contexts of {} tokens: longer texts are cut differently.",
                                      fmt::join(contexts, " and ")));
  return table;
}

/// The difference of a model to the first one, paired by item, as "+0.0120 (-0.0030 to +0.0270)". A group's is the mean
/// over its parts, as its figure.
std::string difference_text(const EvaluatedFigure* figure, const EvaluatedFigure* base) {
  if (figure == nullptr || base == nullptr || figure->items != base->items) return kNoValue;
  std::vector<PairedScore> parts;
  for (size_t i = 0; i < figure->scores.size(); ++i) {
    // Tokenizers that differ give tokens of other numbers, and other perplexities of them.
    if (figure->scores[i].scores.size() < 2 || figure->scores[i].units != base->scores.at(i).units) return kNoValue;
    parts.push_back(paired_figure(figure->figure, figure->scores[i], base->scores.at(i)));
  }
  if (parts.empty()) return kNoValue;
  const auto found = parts.size() == 1 ? parts.front() : paired_score(parts);
  if (!std::isfinite(found.standard_error)) return number_text(found.difference, kSigned);
  return fmt::format("{} ({} to {})", number_text(found.difference, kSigned), number_text(found.interval.low, kSigned),
                     number_text(found.interval.high, kSigned));
}

Table difference_table(const EvaluationRecords& records) {
  const auto& first = records.models.front();
  Table table{
      "Difference to " + first.label,
      {{"task"}, {"figure"}},
      {},
      {"Paired by item, with the 95% interval (Student's t; of perplexities and bits with the error of a bootstrap "
       "over items); tasks with other items or without a file of samples are left out. Each interval is for one "
       "comparison; among many, one in twenty excludes zero by chance."}};
  for (size_t i = 1; i < records.models.size(); ++i) table.columns.push_back({records.models[i].label, true});
  for (const auto& wanted : first.figures) {
    std::vector<TableCell> row = {{wanted.task}, {wanted.figure}};
    bool has_value = false;
    for (size_t i = 1; i < records.models.size(); ++i) {
      row.push_back({difference_text(find_figure(records.models[i], wanted), &wanted)});
      has_value = has_value || row.back().text != kNoValue;
    }
    if (has_value) table.rows.push_back(row);
  }
  return table;
}

/// A figure of each task beside each model; no rows if no model has it.
Table task_table(const EvaluationRecords& records, const std::string& title, const std::string& note, int digits,
                 std::map<std::string, double> EvaluatedModel::*figure) {
  Table table{title, {{"task"}}, {}, {note}};
  std::set<std::string> tasks;
  for (const auto& model : records.models) {
    table.columns.push_back({model.label, true});
    for (const auto& [task, value] : model.*figure) tasks.insert(task);
  }
  for (const auto& task : tasks) {
    auto& row = table.rows.emplace_back();
    row.push_back({task});
    for (const auto& model : records.models) {
      const auto found = (model.*figure).find(task);
      row.push_back({found == (model.*figure).end() ? kNoValue : number_text(found->second, {digits, false})});
    }
  }
  return table;
}

/// Returns true if a model reads prompts through a selector that leaves something out.
bool selects(const EvaluationRecords& records) {
  return std::ranges::any_of(records.models, [](const EvaluatedModel& model) {
    return std::ranges::any_of(model.density, [](const auto& each) { return each.second < 1; });
  });
}

}  // namespace

EvaluationRecords read_evaluations(const std::vector<fs::path>& folders) {
  EvaluationRecords records;
  for (const auto& folder : folders) {
    PRISM_CHECK(is_there(folder / "results_prism.json"), kReport,
                "--evaluation: expected results_prism.json in {}; found none; name a folder of prism eval --out{}.",
                plain_line(folder.string()),
                is_there(folder / "settings.json") ? ", or finish this one by the command that began it" : "");
    try {
      records.models.push_back(FolderReader(folder).read());
    } catch (const nlohmann::json::exception&) {
      throw InputError(kReport,
                       fmt::format("--evaluation: expected the files of prism eval --out in {}; found different ones; "
                                   "name another folder.",
                                   plain_line(folder.string())));
    }
  }
  // Models of the same name are told apart by their folders.
  std::vector<std::string> labels;
  for (const auto& model : records.models) labels.push_back(model.label);
  for (size_t i = 0; i < labels.size(); ++i)
    if (std::ranges::count(labels, labels[i]) > 1)
      records.models[i].label += fmt::format(" ({})", plain_line(folders[i].lexically_normal().string()));
  return records;
}

std::vector<Table> evaluation_tables(const EvaluationRecords& records) {
  if (records.empty()) return {};
  std::vector<Table> tables = {figure_table(records)};
  if (records.models.size() > 1) tables.push_back(difference_table(records));
  if (selects(records))
    tables.push_back(task_table(records, "Density of attention over prompts", "The share of key blocks that are kept.",
                                3, &EvaluatedModel::density));
  tables.push_back(task_table(records, "Recall of attention over prompts",
                              "The share of the exact attention that the kept blocks hold.", 4,
                              &EvaluatedModel::recall));
  tables.push_back(task_table(records, "Seconds", "The time that prism eval took, over all its calls.", 1,
                              &EvaluatedModel::seconds));
  std::erase_if(tables, [](const Table& table) { return table.rows.empty(); });
  return tables;
}

std::vector<AnalysisPicture> evaluation_pictures(const EvaluationRecords& records) {
  std::vector<AnalysisPicture> pictures;
  for (const auto& model : records.models) {
    if (model.grid.empty()) continue;
    HeatMap map{
        .description = "Needles that " + model.label + " finds", .row_label = "depth, %", .column_label = "tokens"};
    std::set<int64_t> depths;
    for (const auto& [length, cells] : model.grid) {
      map.columns.push_back(std::to_string(length));
      for (const auto& [depth, score] : cells) depths.insert(depth);
    }
    for (const int64_t depth : depths) {
      map.rows.push_back(std::to_string(depth));
      for (const auto& [length, cells] : model.grid) {
        const auto found = cells.find(depth);
        map.values.push_back(found == cells.end() ? std::numeric_limits<double>::quiet_NaN() : found->second);
      }
    }
    const auto title = map.description;
    pictures.push_back({fmt::format("needle-grid-{}", pictures.size() + 1), title,
                        "essays with one number; shades are the share of answers that have it", std::move(map)});
  }
  return pictures;
}

}  // namespace prism
