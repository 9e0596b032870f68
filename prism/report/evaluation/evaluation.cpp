#include "prism/report/evaluation/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <span>
#include <sstream>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "prism/core/files.h"
#include "prism/core/random.h"
#include "prism/core/statistics.h"
#include "prism/core/text/printable.h"
#include "prism/report/draw/number_text.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

constexpr const char *kReport = "report", *kGrid = "needle_grid";
constexpr std::string_view kSuffix = ",none", kErrorSuffix = "_stderr,none";
constexpr NumberStyle kValue = {4, false}, kSigned = {4, true};

/// The rows of a task's samples file; none if it is not there.
std::vector<Json> samples_of(const fs::path& folder, const std::string& task) {
  const auto path = folder / fmt::format("samples_{}.jsonl", task);
  if (!is_there(path)) return {};
  std::istringstream stream(read_file(path));
  std::vector<Json> rows;
  for (std::string line; std::getline(stream, line);)
    rows.push_back(parse_json(line, fmt::format("{}, line {}", plain_line(path.string()), rows.size() + 1)));
  return rows;
}

std::string label_of(const Json& config) {
  auto label = fs::path(config.at("model").get<std::string>()).filename().string();
  const auto selector = config.at("selector").get<std::string>();
  if (selector == "dense") return label;
  label += ", " + selector;
  for (const auto& [name, value] : config.at("selector_settings").items())
    label += fmt::format(" {}={}", name, value.dump());
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
    EvaluatedModel model{.label = label_of(json_.at("config")), .figures = {}, .density = {}, .grid = {}};
    std::set<std::string> parts;
    if (json_.contains("group_subtasks"))
      for (const auto& [group, names] : json_["group_subtasks"].items())
        for (const auto& name : names) parts.insert(name.get<std::string>());
    for (const auto& [task, row] : json_.at("results").items())
      if (!parts.contains(task)) add_figures(model, task, row);
    PRISM_CHECK(!model.figures.empty(), kReport,
                "--evaluation: expected results in {}; found none; name another folder.", plain_line(folder_.string()));
    if (json_.contains("density"))
      for (const auto& [task, density] : json_["density"].items()) model.density[task] = density.get<double>();
    add_grid(model);
    return model;
  }

 private:
  std::vector<std::string> parts_of(const std::string& task) const {
    if (!json_.contains("group_subtasks") || !json_["group_subtasks"].contains(task)) return {task};
    return json_["group_subtasks"][task].get<std::vector<std::string>>();
  }

  void add_figures(EvaluatedModel& model, const std::string& task, const Json& row) {
    std::vector<std::vector<Json>> samples;
    uint64_t hash = 0, count = 0;
    for (const auto& part : parts_of(task)) {
      samples.push_back(samples_of(folder_, part));
      for (const auto& sample : samples.back()) {
        const auto question = sample.at("doc").dump() + sample.at("arguments").dump();
        hash = mix64(hash + hash_bytes(std::as_bytes(std::span(question))));
      }
      count += samples.back().size();
    }
    for (const auto& [key, value] : row.items()) {
      if (!key.ends_with(kSuffix) || key.ends_with(kErrorSuffix)) continue;
      EvaluatedFigure figure{.task = task,
                             .figure = key.substr(0, key.size() - kSuffix.size()),
                             .value = value.get<double>(),
                             .scores = {},
                             .items = {}};
      const auto& error = row.at(figure.figure + std::string(kErrorSuffix));
      figure.has_error = error.is_number();
      if (figure.has_error) figure.error = error.get<double>();
      figure.less_is_better = is_less_better(task, figure.figure);
      if (!figure.less_is_better)
        for (const auto& part : samples) {
          auto& scores = figure.scores.emplace_back();
          for (const auto& sample : part) scores.push_back(sample.at(figure.figure).get<double>());
        }
      PRISM_CHECK(!figure.has_error || figure.error >= 0, kReport,
                  "--evaluation: expected standard errors of 0 or more in {}; found {}; name another folder.",
                  plain_line(folder_.string()), figure.error);
      figure.items = fmt::format("{} {:016x}", count, hash);
      model.figures.push_back(std::move(figure));
    }
  }

  bool is_less_better(const std::string& task, const std::string& figure) const {
    const auto& directions = json_.at("higher_is_better");
    const auto parts = parts_of(task);
    return !parts.empty() && directions.contains(parts.front()) && !directions[parts.front()].value(figure, true);
  }

  void add_grid(EvaluatedModel& model) {
    std::map<std::pair<int64_t, int64_t>, std::vector<double>> cells;
    for (const auto& sample : samples_of(folder_, kGrid))
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

Table figure_table(const EvaluationRecords& records) {
  Table table{"Tasks", {{"task"}, {"figure"}}, {}, {"± is the standard error over items."}};
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
  return table;
}

/// The difference of a model to the first one, paired by item, as "+0.0120 (-0.0030 to +0.0270)". A group's is the mean
/// over its parts, as its figure.
std::string difference_text(const EvaluatedFigure* figure, const EvaluatedFigure* base) {
  if (figure == nullptr || base == nullptr || figure->items != base->items) return kNoValue;
  std::vector<double> means, errors;
  int64_t count = 0;
  for (size_t i = 0; i < figure->scores.size(); ++i) {
    const auto of_part = mean_difference(figure->scores[i], base->scores.at(i), /*paired=*/true);
    if (of_part.count < 2) return kNoValue;
    means.push_back(of_part.mean);
    errors.push_back(of_part.standard_error());
    count += of_part.count;
  }
  if (means.empty()) return kNoValue;
  const double mean = mean_of(means);
  const auto interval = t_interval(mean, error_of_mean(errors), count, 0.95);
  return fmt::format("{} ({} to {})", number_text(mean, kSigned), number_text(interval.low, kSigned),
                     number_text(interval.high, kSigned));
}

Table difference_table(const EvaluationRecords& records) {
  const auto& first = records.models.front();
  Table table{"Difference to " + first.label,
              {{"task"}, {"figure"}},
              {},
              {"Paired by item, with the 95% interval (Student's t); perplexities are not paired. Each interval is for "
               "one comparison; among many, one "
               "in twenty excludes zero by chance."}};
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

Table density_table(const EvaluationRecords& records) {
  Table table{"Density of attention over prompts", {{"task"}}, {}, {"The share of key blocks that are kept."}};
  std::set<std::string> tasks;
  bool selects = false;
  for (const auto& model : records.models) {
    table.columns.push_back({model.label, true});
    for (const auto& [task, density] : model.density) {
      tasks.insert(task);
      selects = selects || density < 1;
    }
  }
  if (!selects) return table;
  for (const auto& task : tasks) {
    auto& row = table.rows.emplace_back();
    row.push_back({task});
    for (const auto& model : records.models) {
      const auto found = model.density.find(task);
      row.push_back({found == model.density.end() ? kNoValue : number_text(found->second, {3, false})});
    }
  }
  return table;
}

}  // namespace

EvaluationRecords read_evaluations(const std::vector<fs::path>& folders) {
  EvaluationRecords records;
  for (const auto& folder : folders) {
    PRISM_CHECK(
        is_there(folder / "results_prism.json"), kReport,
        "--evaluation: expected results_prism.json in {}; found none; name a folder that prism eval --out wrote.",
        plain_line(folder.string()));
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
  tables.push_back(density_table(records));
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
