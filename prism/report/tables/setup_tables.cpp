#include "prism/report/tables/setup_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "prism/core/text/names.h"
#include "prism/report/draw/schedule_picture.h"
#include "prism/report/tables/cells.h"

namespace prism {
namespace {

std::string text_or_none(const std::string& text) {
  return text.empty() ? kNoValue : text;
}

/// "model.layers[12].heads" -> before "model.layers", index 12, after ".heads"; index -1 if there is no list.
struct ListPath {
  std::string before, after;
  int64_t first = -1, last = -1;

  explicit ListPath(const std::string& path) {
    const size_t open = path.find('['), close = path.find(']', open == std::string::npos ? 0 : open);
    before = path.substr(0, open);
    const std::string index = close == std::string::npos ? "" : path.substr(open + 1, close - open - 1);
    if (index.empty() || index.size() > 9 || index.find_first_not_of("0123456789") != std::string::npos) {
      before = path;
      return;
    }
    first = last = std::stoll(index);
    after = path.substr(close + 1);
  }

  bool continues(const ListPath& earlier) const {
    return first >= 0 && first == earlier.last + 1 && before == earlier.before && after == earlier.after;
  }

  std::string text() const {
    if (first < 0) return before;
    return fmt::format("{}[{}]{}", before, first == last ? std::to_string(first) : fmt::format("{}-{}", first, last),
                       after);
  }
};

/// The recipe fields in order of appearance, with each group's value: "1, 2, 3" if its runs differ.
struct RecipeFields {
  std::vector<std::string> order;
  std::map<std::string, std::vector<std::string>> values;  ///< one per group; empty if absent

  explicit RecipeFields(const std::vector<RunGroup>& groups) {
    for (size_t i = 0; i < groups.size(); ++i) {
      for (const auto& run : groups[i].runs) {
        for (const auto& [path, value] : run.recipe) add(path, i, groups.size(), value);
      }
    }
  }

 private:
  void add(const std::string& path, size_t group, size_t count, const std::string& value) {
    auto& row = values[path];
    if (row.empty()) {
      order.push_back(path);
      row.resize(count);
      seen_[path].resize(count);
    }
    if (!seen_[path][group].insert(value).second) return;
    row[group] += (row[group].empty() ? "" : ", ") + (value.empty() ? "\"\"" : value);
  }
  std::map<std::string, std::vector<std::set<std::string>>> seen_;
};

/// The distinct texts of the group's runs, joined; kNoValue if there are none.
template <class Text>
std::string distinct_texts(const RunGroup& group, Text text) {
  std::vector<std::string> found;
  for (const auto& run : group.runs) {
    const std::string value = text(run);
    if (!value.empty() && std::find(found.begin(), found.end(), value) == found.end()) found.push_back(value);
  }
  return found.empty() ? kNoValue : join_names(found);
}

}  // namespace

Table schedule_table(const Comparison& comparison) {
  Table table{"Heads × width of each layer", {{"layer", true}}, {}, {}};
  size_t layers = 0;
  for (const auto& group : comparison.groups) {
    table.columns.push_back({group.label, true});
    layers = std::max(layers, group.runs.front().layers.size());
  }
  for (size_t layer = 0; layer < layers; ++layer) {
    auto& row = table.rows.emplace_back();
    row.push_back({std::to_string(layer)});
    for (const auto& group : comparison.groups) {
      const auto& own = group.runs.front().layers;
      row.push_back({layer < own.size() ? layer_text(own[layer]) : kNoValue});
    }
  }
  return table;
}

Table recipe_table(const Comparison& comparison) {
  Table table{"Recipe fields that differ", {{"field"}}, {}, {}};
  for (const auto& group : comparison.groups) {
    table.columns.push_back({group.label});
    if (group.runs.front().recipe.empty()) table.notes.push_back(fmt::format("{} has no recipe.json.", group.label));
  }
  const RecipeFields fields(comparison.groups);
  std::vector<std::pair<ListPath, std::vector<std::string>>> rows;
  for (const auto& path : fields.order) {
    const auto& values = fields.values.at(path);
    if (path == "name" ||
        std::all_of(values.begin(), values.end(), [&](const auto& value) { return value == values.front(); }))
      continue;
    const ListPath place(path);
    const auto earlier = std::find_if(
        rows.begin(), rows.end(), [&](const auto& row) { return place.continues(row.first) && row.second == values; });
    if (earlier == rows.end()) {
      rows.emplace_back(place, values);
    } else {
      earlier->first.last = place.last;
    }
  }
  for (const auto& [place, values] : rows) {
    auto& row = table.rows.emplace_back();
    row.push_back({place.text()});
    for (const auto& value : values) row.push_back({text_or_none(value)});
  }
  return table;
}

Table machine_table(const Comparison& comparison) {
  Table table{"Machine",
              {{"run"},
               {"CPU"},
               {"threads", true},
               {"numbers"},
               {"CPU's limit (GFLOP/s)", true},
               {"share of limit (%)", true},
               {"peak memory (MiB)", true}},
              {},
              {"The limit is measured at start-up by a loop that works in registers only; the share is the median over "
               "training."}};
  for (size_t i = 0; i < comparison.groups.size(); ++i) {
    const RunGroup& group = comparison.groups[i];
    const auto counted = counted_runs(group);
    const Statistic limit = statistic_over(counted, &Run::peak_gflops),
                    share = statistic_over(counted, &Run::peak_share);
    const Statistic memory = statistic_over(counted, &Run::peak_memory_bytes);
    table.rows.push_back(
        {name_cell(comparison, i),
         {distinct_texts(group, [](const Run& run) { return run.cpu; })},
         {distinct_texts(group, [](const Run& run) { return run.threads ? std::to_string(*run.threads) : ""; })},
         {distinct_texts(group, [](const Run& run) { return run.dtype; })},
         {limit.count > 0 ? number_text(limit.mean, kWholeNumber) : kNoValue},
         {share.count > 0 ? fmt::format("{:.1f}", 100 * share.mean) : kNoValue},
         {memory.count > 0 ? number_text(memory.mean / (1 << 20), kWholeNumber) : kNoValue}});
  }
  return table;
}

}  // namespace prism
