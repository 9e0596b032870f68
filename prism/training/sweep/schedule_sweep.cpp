#include "prism/training/sweep/schedule_sweep.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "prism/attention/layer_list.h"
#include "prism/core/error.h"
#include "prism/core/random.h"

namespace prism {
namespace {

void check(const SearchOptions& options) {
  for (const auto& [name, value, least] : {std::tuple{"rungs", options.rungs, int64_t{1}},
                                           {"factor", options.factor, int64_t{2}},
                                           {"candidates", options.candidates, int64_t{1}}})
    PRISM_CHECK(value >= least && value <= 1000, "sweep",
                "search.{}: expected a number from {} to 1000; found {}; change it.", name, least, value);
}

/// A random sample of `count` schedules, in their original order.
std::vector<HeadSchedule> sample(const std::vector<HeadSchedule>& all, size_t count, int64_t seed) {
  std::vector<size_t> places(all.size());
  std::iota(places.begin(), places.end(), size_t{0});
  Random random(static_cast<uint64_t>(seed));
  for (size_t i = 0; i < count; ++i) std::swap(places[i], places[i + random.below(places.size() - i)]);
  places.resize(count);
  std::sort(places.begin(), places.end());
  std::vector<HeadSchedule> drawn;
  for (const size_t place : places) drawn.push_back(all[place]);
  return drawn;
}

/// Query heads per key/value head of the base; the same in all layers.
int64_t queries_a_key_head(const Recipe& recipe) {
  const auto base = base_heads(recipe.model.layers);
  return base.heads / base.kv_heads;
}

Recipe with_schedule(const ScheduleSearch& search, const HeadSchedule& schedule) {
  Recipe recipe = search.base;
  recipe.name = format_head_schedule(schedule);
  for (size_t i = 0; i < schedule.size(); ++i) {
    auto& layer = recipe.model.layers[i];
    layer.heads = schedule[i];
    layer.kv_heads = schedule[i] / queries_a_key_head(search.base);
    layer.head_dim = recipe.model.d_model / schedule[i];
  }
  return recipe;
}

/// Checks that the first rung, the shortest, has at least one step.
void check_rungs(const ScheduleSearch& search) {
  double tokens = static_cast<double>(search.base.train.tokens);
  for (int64_t rung = 1; rung < search.options.rungs; ++rung) tokens /= static_cast<double>(search.options.factor);
  PRISM_CHECK(tokens >= static_cast<double>(step_size(search.base)), "sweep",
              "search: expected a first rung of at least one step, {} tokens; found {:.3g}, which is train.tokens / "
              "factor^(rungs - 1); raise train.tokens or lower rungs or factor.",
              step_size(search.base), tokens);
}

}  // namespace

ScheduleSearch load_schedule_search(const std::filesystem::path& path, const std::vector<Override>& overrides) {
  const auto file = fields_from_json<SweepFile>(read_json(path.string()), "");
  PRISM_CHECK(file.arms.empty() && file.grid.empty() && file.baseline.empty(), "sweep",
              "{}: expected no arms, grid or baseline, because --search creates its own; found some; leave them out.",
              path.string());
  check(file.search);
  ScheduleSearch search{file.search, {}, file.seeds, file.keep == "checkpoints", 0, {}};
  SweepFile one = file;
  one.arms = {{"base", Json::object()}};
  search.base = sweep_of(one, path, overrides).arms[0].recipe;
  PRISM_CHECK(
      unit_of(search.base) == TrainingUnit::tokens, "sweep",
      "expected the recipe of a language model, because rungs train for a number of tokens; found a classifier; "
      "give its schedules as arms.");
  for (const auto& layer : search.base.model.layers)
    PRISM_CHECK(layer.heads * layer.head_dim == search.base.model.d_model, "sweep",
                "expected base heads whose widths add up to d_model = {}; found {} heads of width {}; leave head_dim "
                "out.",
                search.base.model.d_model, layer.heads, layer.head_dim);
  auto space = file.search.space;
  space.d_model = search.base.model.d_model;
  space.layers = static_cast<int64_t>(search.base.model.layers.size());
  space.base_heads = base_heads(search.base.model.layers).heads;
  auto proposed = propose_schedules(space);
  const int64_t group = queries_a_key_head(search.base);
  std::erase_if(proposed, [&](const auto& schedule) {
    return std::any_of(schedule.begin(), schedule.end(), [&](int64_t heads) { return heads % group != 0; });
  });
  PRISM_CHECK(!proposed.empty(), "sweep",
              "expected a schedule in the space whose heads are multiples of {}, the query heads per key/value head; "
              "found none; widen the search.",
              group);
  search.proposed = static_cast<int64_t>(proposed.size());
  check_rungs(search);
  const auto most = static_cast<size_t>(search.options.candidates);
  search.candidates = proposed.size() <= most ? proposed : sample(proposed, most, search.seeds[0]);
  return search;
}

int64_t rung_tokens(const ScheduleSearch& search, int64_t rung) {
  int64_t tokens = search.base.train.tokens;
  for (int64_t i = rung; i + 1 < search.options.rungs; ++i) tokens /= search.options.factor;
  const int64_t step = step_size(search.base);
  return (tokens + step - 1) / step * step;
}

Sweep rung_of(const ScheduleSearch& search, int64_t rung, const std::vector<HeadSchedule>& schedules) {
  Sweep sweep{{}, search.seeds, search.keep_checkpoints};
  const auto& layers = search.base.model.layers;
  std::vector<HeadSchedule> all = {HeadSchedule(layers.size(), base_heads(layers).heads)};
  all.insert(all.end(), schedules.begin(), schedules.end());
  for (const auto& schedule : all) {
    auto recipe = with_schedule(search, schedule);
    recipe.train.tokens = rung_tokens(search, rung);
    sweep.arms.push_back({recipe.name, recipe, search.seeds});
  }
  return sweep;
}

std::vector<HeadSchedule> best_schedules(const ScheduleSearch& search, const std::vector<HeadSchedule>& schedules,
                                         const std::vector<double>& losses, const Metric& metric) {
  PRISM_ASSERT(schedules.size() == losses.size() && !losses.empty(), "sweep", "{} losses of {} schedules",
               losses.size(), schedules.size());
  std::vector<size_t> places(schedules.size());
  std::iota(places.begin(), places.end(), size_t{0});
  const auto factor = static_cast<size_t>(search.options.factor), most = (places.size() + factor - 1) / factor;
  std::erase_if(places, [&](size_t i) { return std::isnan(losses[i]); });
  std::stable_sort(places.begin(), places.end(),
                   [&](size_t a, size_t b) { return metric.is_better(losses[a], losses[b]); });
  places.resize(std::min(places.size(), most));
  std::sort(places.begin(), places.end());
  std::vector<HeadSchedule> best;
  for (const size_t place : places) best.push_back(schedules[place]);
  return best;
}

}  // namespace prism
