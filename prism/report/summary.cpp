#include "prism/report/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "prism/core/names.h"
#include "prism/core/progress.h"
#include "prism/report/schedule_picture.h"

namespace prism {
namespace {

constexpr size_t kMostCurveRows = 12;

/// 8421376 -> "8,421,376".
std::string grouped(int64_t value) {
  std::string digits = std::to_string(value);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > (value < 0 ? 1 : 0); at -= 3) {
    digits.insert(static_cast<size_t>(at), ",");
  }
  return digits;
}

std::string grouped(const std::optional<int64_t>& value) {
  return value ? grouped(*value) : kNoValue;
}

std::string grouped(double value) {
  return grouped(static_cast<int64_t>(std::llround(value)));
}

std::string loss_text(double loss) {
  return fmt::format("{:.4f}", loss);
}

/// -0.03 -> "-0.0300", 0.03 -> "+0.0300", what rounds to nothing has no sign.
std::string difference_text(double difference) {
  const std::string text = fmt::format("{:+.4f}", difference);
  return text == "-0.0000" || text == "+0.0000" ? "0.0000" : text;
}

TableCell loss_cell(const Statistic& loss) {
  if (loss.count == 0) return {kNoValue};
  return {loss_text(loss.mean), loss.count > 1 ? loss_text(loss.deviation) : ""};
}

TableCell difference_cell(const Statistic& loss) {
  return {difference_text(loss.mean), loss.count > 1 ? loss_text(loss.deviation) : ""};
}

template <class Number>
Statistic over(const std::vector<const Run*>& runs, std::optional<Number> Run::*field) {
  std::vector<double> values;
  for (const Run* run : runs) {
    if (run->*field) values.push_back(static_cast<double>(*(run->*field)));
  }
  return statistic(values);
}

TableCell rate_cell(const Statistic& rate) {
  if (rate.count == 0) return {kNoValue};
  return {grouped(rate.mean), rate.count > 1 ? grouped(rate.deviation) : ""};
}

TableCell name_cell(const Comparison& comparison, size_t group) {
  return {comparison.groups[group].label, "", false, static_cast<int>(group)};
}

std::string text_or_none(const std::string& text) {
  return text.empty() ? kNoValue : text;
}

bool all_finished(const Run& run) {
  return run.finished;
}

bool any_unfinished(const Comparison& comparison) {
  return std::any_of(comparison.groups.begin(), comparison.groups.end(), [](const RunGroup& group) {
    return !std::all_of(group.runs.begin(), group.runs.end(), all_finished);
  });
}

int64_t tokens_done(const std::vector<const Run*>& runs) {
  int64_t least = runs.front()->tokens;
  for (const Run* run : runs) least = std::min(least, run->tokens);
  return least;
}

/// "finished", "41% done", or "not finished" where the goal is unknown.
std::string state_text(const Run& run) {
  if (run.finished) return "finished";
  if (!run.total_tokens || *run.total_tokens < 1) return "not finished";
  // Rounded down: a run that has not finished is not 100% done.
  const double percent = 100.0 * static_cast<double>(run.tokens) / static_cast<double>(*run.total_tokens);
  return fmt::format("{:.0f}% done", std::clamp(std::floor(percent), 0.0, 99.0));
}

std::string group_state(const RunGroup& group) {
  const auto finished = std::count_if(group.runs.begin(), group.runs.end(), all_finished);
  if (finished > 0) return "finished";
  return state_text(*std::min_element(group.runs.begin(), group.runs.end(),
                                      [](const Run& a, const Run& b) { return a.tokens < b.tokens; }));
}

std::string seeds_text(const RunGroup& group) {
  const size_t counted = counted_runs(group).size();
  return counted == group.runs.size() ? std::to_string(counted) : fmt::format("{} of {}", counted, group.runs.size());
}

/// The group with the lowest loss among those that were evaluated after the most tokens, if these are two at least.
struct Best {
  size_t group = 0;
  CurveStatistic last;
  bool of_all = true;  ///< no group was left out of the comparison
};

std::optional<Best> best_group(const Comparison& comparison) {
  std::vector<std::pair<size_t, CurveStatistic>> ends;
  int64_t most = 0;
  for (size_t i = 0; i < comparison.groups.size(); ++i) {
    const auto curve = validation_curve(comparison.groups[i]);
    if (curve.empty()) continue;
    ends.emplace_back(i, curve.back());
    most = std::max(most, curve.back().tokens);
  }
  std::erase_if(ends, [&](const auto& end) { return end.second.tokens < most; });
  if (ends.size() < 2) return std::nullopt;
  const auto lowest = std::min_element(
      ends.begin(), ends.end(), [](const auto& a, const auto& b) { return a.second.loss.mean < b.second.loss.mean; });
  return Best{lowest->first, lowest->second, ends.size() == comparison.groups.size()};
}

std::string spread_text(const Statistic& loss) {
  return loss.count > 1 ? " ± " + loss_text(loss.deviation) : "";
}

/// The difference column's footnotes: what it is measured against, and where it is not what one expects.
void add_difference_notes(const Comparison& comparison, Table& table) {
  const RunGroup& baseline = comparison.groups[comparison.baseline];
  bool paired = false, interpolated = false;
  for (size_t i = 0; i < comparison.groups.size(); ++i) {
    if (i == comparison.baseline) continue;
    const auto gap = loss_difference(comparison.groups[i], baseline);
    const auto curve = validation_curve(comparison.groups[i]);
    paired |= gap.paired;
    interpolated |= gap.interpolated && !gap.points.empty();
    if (gap.points.empty() || gap.points.back().tokens == curve.back().tokens) continue;
    table.notes.push_back(fmt::format("The difference of {} is taken after {} tokens, the last that both reached.",
                                      comparison.groups[i].label, grouped(gap.points.back().tokens)));
  }
  std::string note =
      fmt::format("Δ val loss: validation loss minus that of {} after equal numbers of tokens", baseline.label);
  if (paired) note += ", seed by seed where the seeds agree";
  table.notes.insert(table.notes.begin(), note + "; negative is better.");
  if (interpolated) {
    table.notes.push_back(
        "Some runs were evaluated at different numbers of tokens; between evaluations, a straight line is assumed.");
  }
}

void add_state_notes(const Comparison& comparison, Table& table) {
  for (const auto& group : comparison.groups) {
    for (const auto& run : group.runs) {
      if (run.finished) continue;
      const std::string who =
          group.runs.size() > 1 && run.seed ? fmt::format("{}, seed {},", group.label, *run.seed) : group.label;
      table.notes.push_back(fmt::format("{} has not finished: {} tokens{} so far{}.", who, grouped(run.tokens),
                                        run.total_tokens ? fmt::format(" of {}", grouped(*run.total_tokens)) : "",
                                        run.valid.empty() ? ", no evaluation yet" : ""));
    }
  }
}

/// "model.layers[12].heads" -> before "model.layers", index 12, after ".heads"; index -1 if there is none.
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

/// Field by field in order of appearance, what each group has: "1, 2, 3" where its runs differ.
struct RecipeFields {
  std::vector<std::string> order;
  std::map<std::string, std::vector<std::string>> values;  ///< one for each group; empty: absent

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

/// What distinct runs of the group say, joined; kNoValue if none says anything.
template <class Text>
std::string distinct_texts(const RunGroup& group, Text text) {
  std::vector<std::string> found;
  for (const auto& run : group.runs) {
    const std::string value = text(run);
    if (!value.empty() && std::find(found.begin(), found.end(), value) == found.end()) found.push_back(value);
  }
  return found.empty() ? kNoValue : join_names(found);
}

/// What the results table has besides the columns that are always there.
struct ResultColumns {
  bool seeds, states, differences;
  std::optional<Best> best;

  explicit ResultColumns(const Comparison& comparison)
      : seeds(has_seeds(comparison)),
        states(any_unfinished(comparison)),
        differences(comparison.groups.size() > 1),
        best(best_group(comparison)) {}
};

TableCell last_difference_cell(const Comparison& comparison, size_t group) {
  if (group == comparison.baseline) return {"baseline"};
  const auto gap = loss_difference(comparison.groups[group], comparison.groups[comparison.baseline]).points;
  return gap.empty() ? TableCell{kNoValue} : difference_cell(gap.back().loss);
}

std::vector<TableCell> results_row(const Comparison& comparison, size_t index, const ResultColumns& columns) {
  const RunGroup& group = comparison.groups[index];
  const auto counted = counted_runs(group);
  const auto curve = validation_curve(group);
  std::vector<TableCell> row = {name_cell(comparison, index), {text_or_none(group.runs.front().schedule)}};
  if (columns.seeds) row.push_back({seeds_text(group)});
  if (columns.states) row.push_back({group_state(group)});
  row.push_back({grouped(group.runs.front().parameters)});
  row.push_back({grouped(tokens_done(counted))});
  row.push_back(loss_cell(curve.empty() ? Statistic{} : curve.back().loss));
  row.back().strong = columns.best && columns.best->group == index;
  if (columns.differences) row.push_back(last_difference_cell(comparison, index));
  row.push_back(rate_cell(over(counted, &Run::tokens_per_s)));
  double seconds = 0;
  for (const Run* run : counted) seconds += run->seconds;
  row.push_back({short_duration(seconds / static_cast<double>(counted.size()))});
  return row;
}

}  // namespace

std::string headline(const Comparison& comparison) {
  const RunGroup& baseline = comparison.groups[comparison.baseline];
  const auto base_curve = validation_curve(baseline);
  if (comparison.groups.size() == 1) {
    if (base_curve.empty()) return fmt::format("{}: no validation loss has been recorded yet.", baseline.label);
    const auto& last = base_curve.back();
    return fmt::format("{}: validation loss {}{} after {} tokens.", baseline.label, loss_text(last.loss.mean),
                       spread_text(last.loss), grouped(last.tokens));
  }
  const auto best = best_group(comparison);
  if (!best)
    return "No two runs have been evaluated after the same number of tokens at their end, so none is called the best.";
  const RunGroup& winner = comparison.groups[best->group];
  std::string text =
      fmt::format("{}{} has the lowest validation loss after {} tokens: {}{}",
                  best->of_all ? "" : "Of the runs that got that far, ", winner.label, grouped(best->last.tokens),
                  loss_text(best->last.loss.mean), spread_text(best->last.loss));
  if (best->group == comparison.baseline) return text + ". It is the baseline.";
  const auto gap = loss_difference(winner, baseline).points;
  if (gap.empty() || gap.back().tokens != best->last.tokens) return text + ".";
  const Statistic& loss = gap.back().loss;
  return text + fmt::format(", which is {}{} {} {}.", loss_text(std::abs(loss.mean)), spread_text(loss),
                            loss.mean <= 0 ? "below" : "above", baseline.label);
}

std::string last_differences(const Comparison& comparison) {
  std::string text;
  for (size_t i = 0; i < comparison.groups.size(); ++i) {
    if (i == comparison.baseline) continue;
    const auto gap = loss_difference(comparison.groups[i], comparison.groups[comparison.baseline]).points;
    if (gap.empty()) continue;
    std::string number = difference_text(gap.back().loss.mean);
    if (number[0] == '-') number.replace(0, 1, "−");
    text += fmt::format("{}{} {}{}", text.empty() ? "" : "; ", comparison.groups[i].label, number,
                        spread_text(gap.back().loss));
  }
  return text.empty() ? text : " At the last evaluation that both have: " + text + ".";
}

Table results_table(const Comparison& comparison) {
  const ResultColumns columns(comparison);
  Table table{"Results", {{"run"}, {"schedule"}}, {}, {}};
  if (columns.seeds) table.columns.push_back({"seeds", true});
  if (columns.states) table.columns.push_back({"state"});
  for (const char* header : {"parameters", "tokens", "val loss"}) table.columns.push_back({header, true});
  if (columns.differences) table.columns.push_back({"Δ val loss", true});
  for (const char* header : {"tokens/s", "time"}) table.columns.push_back({header, true});
  for (size_t i = 0; i < comparison.groups.size(); ++i) table.rows.push_back(results_row(comparison, i, columns));
  if (columns.differences) add_difference_notes(comparison, table);
  if (columns.seeds) {
    table.notes.push_back("± is the sample standard deviation over seeds; time and tokens/s are means over them.");
  }
  add_state_notes(comparison, table);
  return table;
}

Table runs_table(const Comparison& comparison) {
  Table table{"Every run",
              {{"run"},
               {"seed", true},
               {"folder"},
               {"state"},
               {"tokens", true},
               {"train loss", true},
               {"val loss", true},
               {"lowest val loss", true},
               {"tokens/s", true},
               {"time", true}},
              {},
              {"Train loss: the end of the smoothed curve."}};
  for (size_t i = 0; i < comparison.groups.size(); ++i) {
    for (const auto& run : comparison.groups[i].runs) {
      const auto lowest = std::min_element(run.valid.begin(), run.valid.end(),
                                           [](const CurvePoint& a, const CurvePoint& b) { return a.loss < b.loss; });
      table.rows.push_back({name_cell(comparison, i),
                            {grouped(run.seed)},
                            {run.folder.string()},
                            {state_text(run)},
                            {grouped(run.tokens)},
                            {run.train.empty() ? kNoValue : loss_text(smooth_curve(run.train).back().loss)},
                            {run.valid.empty() ? kNoValue : loss_text(run.valid.back().loss)},
                            {run.valid.empty() ? kNoValue : loss_text(lowest->loss)},
                            {run.tokens_per_s ? grouped(*run.tokens_per_s) : kNoValue},
                            {short_duration(run.seconds)}});
    }
  }
  return table;
}

Table validation_table(const Comparison& comparison) {
  Table table{"Validation loss in numbers", {{"tokens", true}}, {}, {}};
  std::map<int64_t, std::vector<TableCell>> rows;
  for (size_t i = 0; i < comparison.groups.size(); ++i) {
    table.columns.push_back({comparison.groups[i].label, true});
    for (const auto& [tokens, loss] : validation_curve(comparison.groups[i])) {
      rows.try_emplace(tokens, comparison.groups.size(), TableCell{kNoValue}).first->second[i] = loss_cell(loss);
    }
  }
  const size_t stride = (rows.size() + kMostCurveRows - 1) / kMostCurveRows;
  size_t left = rows.size();
  for (auto& [tokens, cells] : rows) {
    // Counted from the end, so that the last evaluation is there.
    if (--left % stride != 0) continue;
    cells.insert(cells.begin(), TableCell{grouped(tokens)});
    table.rows.push_back(std::move(cells));
  }
  return table;
}

Table schedule_table(const Comparison& comparison) {
  Table table{"Heads × width of each layer", {{"layer", true}}, {}, {}};
  size_t layers = 0;
  for (const auto& group : comparison.groups) {
    table.columns.push_back({group.label, true});
    layers = std::max(layers, group.runs.front().layers.size());
  }
  for (size_t layer = 0; layer < layers; ++layer) {
    auto& row = table.rows.emplace_back();
    row.push_back({std::to_string(layer + 1)});
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
    const Statistic limit = over(counted, &Run::peak_gflops), share = over(counted, &Run::peak_share);
    const Statistic memory = over(counted, &Run::peak_memory_bytes);
    table.rows.push_back(
        {name_cell(comparison, i),
         {distinct_texts(group, [](const Run& run) { return run.cpu; })},
         {distinct_texts(group, [](const Run& run) { return run.threads ? std::to_string(*run.threads) : ""; })},
         {distinct_texts(group, [](const Run& run) { return run.dtype; })},
         {limit.count > 0 ? grouped(limit.mean) : kNoValue},
         {share.count > 0 ? fmt::format("{:.1f}", 100 * share.mean) : kNoValue},
         {memory.count > 0 ? grouped(memory.mean / (1 << 20)) : kNoValue}});
  }
  return table;
}

}  // namespace prism
