#include "prism/evaluation/ruler/ruler.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/stop.h"
#include "prism/evaluation/tasks/row_values.h"
#include "prism/evaluation/text_windows.h"
#include "prism/generation/generate.h"

namespace prism {
namespace {

struct RulerRow {
  std::string name;
  int64_t new_tokens;
  int64_t least_units;  ///< with fewer, what is hidden has no room
  bool any_target;      ///< one of the targets is enough
  std::function<RulerPrompt(const RulerSetting&, Random&, int64_t)> make;
};

std::function<RulerPrompt(const RulerSetting&, Random&, int64_t)> hides(const NeedleOptions& options) {
  return [options](const RulerSetting& setting, Random& random, int64_t units) {
    return needle_prompt(options, setting, random, units);
  };
}

const std::vector<RulerRow>& rows() {
  using enum Haystack;
  static const std::vector<RulerRow> table = {
      {"ruler_niah_single_1", 128, 1, false, hides({})},
      {"ruler_niah_single_2", 128, 1, false, hides({.haystack = essay})},
      {"ruler_niah_single_3", 128, 1, false, hides({.haystack = essay, .uuid_values = true})},
      {"ruler_niah_multikey_1", 128, 1, false, hides({.haystack = essay, .keys = 4})},
      {"ruler_niah_multikey_2", 128, 1, false, hides({.haystack = needles})},
      {"ruler_niah_multikey_3", 128, 1, false, hides({.haystack = needles, .uuid_keys = true, .uuid_values = true})},
      {"ruler_niah_multivalue", 128, 1, false, hides({.haystack = essay, .values = 4})},
      {"ruler_niah_multiquery", 128, 1, false, hides({.haystack = essay, .keys = 4, .queries = 4})},
      {"ruler_vt", 30, 5, false, variable_prompt},
      {"ruler_cwe", 120, 11, false, common_words_prompt},
      {"ruler_fwe", 50, 60, false, frequent_words_prompt},
      {"ruler_qa_1", 32, 1, true,
       [](const RulerSetting& setting, Random& random, int64_t units) {
         return document_prompt(setting.sources.squad(), setting, random, units);
       }},
      {"ruler_qa_2", 32, 1, true,
       [](const RulerSetting& setting, Random& random, int64_t units) {
         return document_prompt(setting.sources.hotpot(), setting, random, units);
       }},
  };
  return table;
}

constexpr const char* kPrefix = "ruler_";
constexpr const char* kGrid = "needle_grid";

const RulerRow& row_of(const Task& task) {
  return *std::ranges::find(rows(), task.name, &RulerRow::name);
}

/// The prompts of one task: one sample after another.
class RulerMaker {
 public:
  RulerMaker(const RulerRow& row, const Tokenizer& tokenizer, RulerSources& sources, int64_t length,
             const RulerOptions& options, const PromptWriter& write, const std::function<void()>& on_prompt)
      : row_(row),
        write_(write),
        on_prompt_(on_prompt),
        setting_{sources,
                 [&](std::string_view text) {
                   check_not_stopped(kEvaluation);
                   return std::ssize(encode_prompt(tokenizer, text, "auto"));
                 },
                 length, row.new_tokens, 0},
        samples_(options.samples),
        seed_(options.seed) {}

  /// @param units  set to the units of the prompt; the search begins there.
  RulerPrompt make(int64_t sample, int64_t& units) {
    setting_.sample = sample;
    const int64_t least = row_.least_units;
    PRISM_CHECK(fits(least), kEvaluation,
                "expected a length that holds the smallest prompt of {}, {} tokens with its answer; found {}; raise "
                "--lengths, and the model's context with --context if it is no longer.",
                row_.name, shortest_length(), setting_.length);
    int64_t low = std::max(least, units), step = std::max<int64_t>(1, low / 8);
    while (low > least && !fits(low)) low = std::max(least, low - step), step *= 2;
    int64_t high = low + 1;
    for (step = 1; has(high) && fits(high); step *= 2) low = high, high += step;
    if (!has(high)) high = most() + 1;
    while (high - low > 1) {
      const int64_t middle = low + (high - low) / 2;
      (fits(middle) ? low : high) = middle;
    }
    units = low;
    if (on_prompt_) on_prompt_();
    return prompt(low);
  }

 private:
  /// That which holds the smallest prompt of every sample. Prompts may depend on the length.
  int64_t shortest_length() const {
    auto setting = setting_;
    for (setting.sample = 0; setting.sample < samples_; ++setting.sample)
      for (int64_t found; (found = tokens(prompt(setting, row_.least_units))) > setting.length;) setting.length = found;
    return setting.length;
  }
  RulerPrompt prompt(const RulerSetting& setting, int64_t units) const {
    uint64_t stream = 0;
    for (const char letter : row_.name) stream = mix64(stream + static_cast<uint8_t>(letter));
    Random random(static_cast<uint64_t>(seed_), mix64(stream + static_cast<uint64_t>(setting.sample)));
    return row_.make(setting, random, units);
  }
  RulerPrompt prompt(int64_t units) const { return prompt(setting_, units); }
  int64_t tokens(const RulerPrompt& made) const {
    return setting_.count_tokens(write_(made.text, made.prefix)) + row_.new_tokens;
  }
  bool fits(int64_t units) const { return tokens(prompt(units)) <= setting_.length; }
  /// Distinct words run out; other haystacks repeat.
  int64_t most() const {
    return row_.name == "ruler_cwe" ? std::ssize(setting_.sources.common_words()) : int64_t{1} << 40;
  }
  bool has(int64_t units) const { return units <= most(); }

  const RulerRow& row_;
  const PromptWriter& write_;
  const std::function<void()>& on_prompt_;
  RulerSetting setting_;
  int64_t samples_, seed_;
};

void check_samples(const RulerOptions& options) {
  PRISM_CHECK(options.samples >= 1, kEvaluation, "expected at least 1 sample; found {}; raise --samples.",
              options.samples);
}

TaskItem item_of(const RulerPrompt& made, const RulerRow& row, const PromptWriter& write, Json described) {
  TaskItem item;
  item.row = std::move(described);
  item.queries = {{write(made.text, made.prefix), ""}};
  item.targets = made.targets;
  item.new_tokens = row.new_tokens;
  return item;
}

}  // namespace

std::string write_plainly(const std::string& question, const std::string& answer) {
  return question + answer;
}

std::vector<Task> made_tasks() {
  std::vector<Task> tasks = {{.name = kGrid, .kind = TaskKind::generation, .figures = {"contains"}}};
  for (const auto& row : rows())
    tasks.push_back({.name = row.name,
                     .group = row.any_target ? "ruler_qa" : "ruler",
                     .kind = TaskKind::generation,
                     .figures = {row.any_target ? "string_match_part" : "string_match_all"}});
  return tasks;
}

bool is_ruler_task(const Task& task) {
  return task.name.starts_with(kPrefix);
}

std::vector<TaskItem> ruler_items(const Task& task, const Tokenizer& tokenizer, RulerSources& sources, int64_t length,
                                  const RulerOptions& options, const PromptWriter& write,
                                  const std::function<void()>& on_prompt) {
  check_samples(options);
  const auto& row = row_of(task);
  RulerMaker maker(row, tokenizer, sources, length, options, write, on_prompt);
  std::vector<TaskItem> items;
  int64_t units = row.least_units;
  for (int64_t sample = 0; sample < options.samples; ++sample) {
    const auto made = maker.make(sample, units);
    items.push_back(item_of(made, row, write, {{"sample", sample}, {"length", length}, {"units", units}}));
  }
  return items;
}

std::vector<TaskItem> grid_items(const Tokenizer& tokenizer, RulerSources& sources, const RulerOptions& options,
                                 const PromptWriter& write, const std::function<void()>& on_prompt) {
  check_samples(options);
  for (const int64_t depth : options.depths)
    PRISM_CHECK(depth >= 0 && depth <= 100, kEvaluation, "expected depths from 0 to 100 percent; found {}; change it.",
                depth);
  std::vector<TaskItem> items;
  for (const int64_t length : options.lengths) {
    int64_t units = 1;
    for (const int64_t depth : options.depths) {
      const RulerRow row{kGrid, 128, 1, false, [depth](const RulerSetting& setting, Random& random, int64_t words) {
                           return needle_at(depth, setting, random, words);
                         }};
      RulerMaker maker(row, tokenizer, sources, length, options, write, on_prompt);
      for (int64_t sample = 0; sample < options.samples; ++sample) {
        const auto made = maker.make(sample, units);
        items.push_back(
            item_of(made, row, write, {{"sample", sample}, {"length", length}, {"depth", depth}, {"units", units}}));
      }
    }
  }
  return items;
}

}  // namespace prism
