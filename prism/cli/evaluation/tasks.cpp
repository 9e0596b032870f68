// prism eval --task perplexity, piqa, ...: what a model, or two of them, answer to the items of tasks.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "prism/checkpoint/prompt_cache.h"
#include "prism/cli/evaluation/eval.h"
#include "prism/cli/evaluation/perplexity_output.h"
#include "prism/cli/evaluation/questions.h"
#include "prism/cli/evaluation/result_folder.h"
#include "prism/cli/evaluation/task_output.h"
#include "prism/core/console.h"
#include "prism/core/error.h"
#include "prism/core/progress.h"
#include "prism/core/stop.h"
#include "prism/core/text/counted.h"
#include "prism/core/text/printable.h"
#include "prism/core/timer.h"
#include "prism/evaluation/perplexity.h"
#include "prism/evaluation/tasks/answers.h"
#include "prism/evaluation/tasks/figures.h"
#include "prism/evaluation/tasks/samples.h"
#include "prism/kernels/compute_type.h"
#include "prism/models/prompt_checks.h"

namespace prism {
namespace {

/// A model with what reads its prompts.
struct LoadedModel {
  /// @param sets_given  changes of the selector's settings.
  LoadedModel(const std::string& path_given, const ModelFolder& folder_given, const PrefillOptions& options,
              const std::vector<std::string>& sets_given, const PrefillCosts& costs, const EvalWords& words)
      : path(path_given),
        sets(sets_given),
        folder(folder_given),
        meter(words.prefill.meter),
        prefill(options, costs, options.selector == "dense" ? nullptr : &meter),
        model(folder.decoder, *folder.tokenizer, {.prefill = &prefill}, &meter) {}
  LoadedModel(const LoadedModel&) = delete;
  LoadedModel& operator=(const LoadedModel&) = delete;

  std::string dtype() const { return compute_type_name(folder.decoder->compute_type()); }
  int64_t context() const { return folder.decoder->config().context; }
  double measure_seconds() const { return all_layers(meter.layers()).measure_seconds; }
  /// The model, as it is told apart from the other one of a comparison.
  std::string name(const EvalWords& words) const {
    if (words.against_prefill.empty()) return path;
    return fmt::format("{} with {} attention{}{}", path, prefill.options().selector, sets.empty() ? "" : ", ",
                       fmt::join(sets, " "));
  }

  std::string path;
  const std::vector<std::string>& sets;
  const ModelFolder& folder;
  PrefillMeter meter;
  Prefill prefill;
  TaskModel model;
};

/// What the answers depend on. @param context  to which texts were cut.
Json settings_of(const LoadedModel& loaded, const EvalWords& words, int64_t context) {
  const auto& decoder = *loaded.folder.decoder;
  Json settings = {{"model", loaded.path},
                   {"context", context},
                   {"rope_scaling", words.compute.context.rope_scaling},
                   {"weights", words.compute.weights},
                   {"dtype", loaded.dtype()},
                   {"selector", loaded.prefill.options().selector},
                   {"selector_settings", loaded.prefill.options().settings},
                   {"selector_changes", loaded.sets},
                   {"chunk", loaded.prefill.options().chunk},
                   {"recall_rows", words.prefill.meter.recall_rows}};
  for (const auto& [name, value] :
       prompt_fingerprint(decoder, *loaded.folder.tokenizer, loaded.prefill.options(), decoder.compute_type()))
    settings["fingerprint"][name] = value;
  if (asks_perplexity(words)) {
    settings.update({{"window", words.windows.window}, {"stride", words.windows.stride}});
  } else {
    settings.update(
        {{"limit", words.items.limit}, {"shots", words.items.shots}, {"chat_template", words.apply_chat_template}});
  }
  if (asks_made(words)) settings.update({{"samples", words.ruler.samples}, {"seed", words.ruler.seed}});
  if (asks_grid(words)) settings.update({{"grid_lengths", words.ruler.lengths}, {"grid_depths", words.ruler.depths}});
  return settings;
}

/// The progress line of a task: questions by the item, texts, which may be books, by the token.
class TaskProgress {
 public:
  /// @param model  that counts the tokens of texts: a TaskModel or a TaskPair.
  template <class Model>
  TaskProgress(const Questions& questions, const Model& model) {
    const auto& [task, items] = questions;
    const auto counts = task.is_text() ? model.count_tokens(task, items) : std::vector<int64_t>();
    for (const int64_t count : counts) tokens_before_.push_back(tokens_before_.back() + count);
    if (task.is_text()) {
      progress_.emplace("eval " + task.name, tokens_before_.back(), " tokens");
    } else {
      progress_.emplace("eval " + task.name, std::ssize(items), " items");
    }
  }

  void step(int64_t tokens) {
    tokens_ += tokens;
    show();
  }
  void batch(int64_t items) {
    items_ = items;
    if (counts_tokens()) tokens_ = tokens_before_[static_cast<size_t>(items)];  // also those of an earlier call
    show();
  }

 private:
  bool counts_tokens() const { return tokens_before_.size() > 1; }
  void show() {
    if (counts_tokens()) return progress_->update(std::min(tokens_, tokens_before_.back()));
    progress_->update(items_, fmt::format("{} tokens", short_number(static_cast<double>(tokens_))));
  }

  std::vector<int64_t> tokens_before_ = {0};  ///< each text, and after the last
  std::optional<Progress> progress_;
  int64_t items_ = 0, tokens_ = 0;
};

void print_cut(const std::vector<TaskFigures>& all, int64_t context) {
  int64_t cut = 0;
  for (const auto& each : all) cut += each.cut;
  if (cut > 0)
    print_row("cut", fmt::format("{}, at the beginning, to the context of {}", counted(cut, "item"),
                                 counted(context, "token")));
}

/// Items of which a text was cut.
int64_t cut_of(const std::vector<ItemAnswers>& answers) {
  return std::ranges::count_if(answers, [](const ItemAnswers& each) { return each.cut > 0; });
}

TaskFigures figures_of(const Questions& questions, const std::vector<ItemAnswers>& answers, const EvalWords& words) {
  return {.task = questions.task,
          .figures = figures_of(questions.task, questions.items, answers),
          .items = std::ssize(questions.items),
          .cut = cut_of(answers),
          .shots = words.items.shots,
          .kept = kept_of(answers)};
}

/// How a model's figures came about.
struct Course {
  int64_t context = 0;      ///< to which texts were cut
  double seconds = 0;       ///< without what is only measured; 0: not stated
  bool is_resumed = false;  ///< some answers are of an earlier call, and no times of attention are known
};

KeptCounts kept_of(const std::vector<TaskFigures>& figures) {
  KeptCounts kept;
  for (const auto& each : figures) kept += each.kept;
  return kept;
}

/// "spectral, density 0.310, recall 0.9120"; empty for dense attention.
std::string attention_text(const LoadedModel& loaded, const std::vector<TaskFigures>& figures, const Course& course) {
  if (!loaded.prefill.selects()) return "";
  if (!course.is_resumed) return prefill_text(loaded.prefill.options(), loaded.meter.layers());
  const auto kept = kept_of(figures);
  return fmt::format("{}, density {:.3f}{}", loaded.prefill.options().selector, kept.density(),
                     kept.recall_queries > 0 ? fmt::format(", recall {:.4f}", kept.recall()) : "");
}

/// What was computed how, and what was kept; with the times and heads, unless some answers are of an earlier call.
Json attention_to_json(const LoadedModel& loaded, const std::vector<TaskFigures>& figures, const Course& course) {
  const auto& options = loaded.prefill.options();
  if (!loaded.prefill.selects() || !course.is_resumed) return prefill_to_json(options, loaded.meter.layers());
  auto json = prefill_to_json(options, {});
  const auto kept = kept_of(figures);
  json["density"] = kept.density();
  if (kept.recall_queries > 0) json["recall"] = kept.recall();
  return json;
}

/// Prints the figures of one model.
void print_results(const EvalWords& words, const LoadedModel& loaded, const std::vector<TaskFigures>& figures,
                   const Course& course) {
  if (words.json) {
    Json json = results_to_json(figures, settings_of(loaded, words, course.context), Json());
    json["prefill"] = attention_to_json(loaded, figures, course);
    if (course.seconds > 0) json["seconds"] = course.seconds;
    fmt::print("{}\n", to_text(json));
    return;
  }
  print_figures(figures, loaded.prefill.selects());
  print_cut(figures, course.context);
  if (loaded.prefill.selects()) print_row("attention", attention_text(loaded, figures, course));
  print_row("computed in", course.seconds > 0 ? fmt::format("{}, {}", loaded.dtype(), short_duration(course.seconds))
                                              : loaded.dtype());
}

void print_perplexity(const EvalWords& words, const LoadedModel& loaded, const PerplexityResult& result,
                      const std::vector<TaskFigures>& figures, const Course& course) {
  prism::print_perplexity(words, result,
                          {.model = loaded.path,
                           .dtype = loaded.dtype(),
                           .attention = attention_text(loaded, figures, course),
                           .prefill = attention_to_json(loaded, figures, course),
                           .seconds = course.seconds,
                           .context = loaded.context()});
}

void evaluate_one(const EvalWords& words, const std::vector<Questions>& all, LoadedModel& loaded) {
  std::optional<ResultFolder> folder;
  if (!words.out.empty()) folder.emplace(words.out, settings_of(loaded, words, loaded.context()));
  Course course{.context = loaded.context()};
  std::vector<TaskFigures> figures;
  std::vector<ItemAnswers> answers;
  for (const auto& questions : all) {
    std::optional<SampleFile> file;
    if (folder) file.emplace(folder->samples(questions.task), questions.task, questions.items);
    course.is_resumed = course.is_resumed || (file && !file->answers().empty());
    std::optional<TaskProgress> progress;
    std::optional<Timer> timer;
    const double measured_before = loaded.measure_seconds();
    const auto add_seconds = [&] {
      const double spent = timer ? timer->seconds() - (loaded.measure_seconds() - measured_before) : 0;
      course.seconds += spent;
      if (folder) folder->add_seconds(questions.task, spent);
    };
    try {
      progress.emplace(questions, loaded.model);
      timer.emplace();
      answers = answer_all(
          loaded.model, questions.task, questions.items, file ? &*file : nullptr,
          [&](int64_t tokens) { progress->step(tokens); }, [&](int64_t items) { progress->batch(items); });
      add_seconds();
      figures.push_back(figures_of(questions, answers, words));
      if (folder) folder->write(figures);
    } catch (const FailedError&) {
      if (stop_signal() == 0 || !folder) throw;
      add_seconds();
      throw FailedError("eval", fmt::format("stopped by a signal; the answers to {} of {} of {} are in {}, and the "
                                            "same command resumes after them.",
                                            file->answers().size(), counted(std::ssize(questions.items), "item"),
                                            questions.task.name, plain_line(words.out)));
    }
  }
  if (course.is_resumed) course.seconds = 0;
  std::optional<PerplexityResult> perplexity;
  if (asks_perplexity(words)) perplexity = perplexity_of(all[0].task, all[0].items, answers, loaded.model);
  if (perplexity) {
    print_perplexity(words, loaded, *perplexity, figures, course);
  } else {
    print_results(words, loaded, figures, course);
  }
}

TaskPair::Answers answer_both(const Questions& questions, TaskPair& pair) {
  TaskProgress progress(questions, pair);
  TaskPair::Answers found;
  for (std::span<const TaskItem> rest(questions.items); !rest.empty();) {
    const auto batch = next_items(rest);
    auto more = pair.answer(questions.task, batch, [&](int64_t tokens) { progress.step(tokens); });
    std::ranges::move(more.a, std::back_inserter(found.a));
    std::ranges::move(more.b, std::back_inserter(found.b));
    std::ranges::move(more.divergences, std::back_inserter(found.divergences));
    found.seconds_a += more.seconds_a;
    found.seconds_b += more.seconds_b;
    rest = rest.subspan(batch.size());
    progress.batch(std::ssize(found.a));
  }
  return found;
}

void compare_perplexities(const EvalWords& words, const Questions& questions, LoadedModel& a, LoadedModel& b) {
  TaskPair pair(a.model, b.model);
  pair.check(questions.task);
  const auto found = answer_both(questions, pair);
  const auto result_of = [&](const LoadedModel& loaded, const std::vector<ItemAnswers>& answers, double seconds) {
    auto result = perplexity_of(questions.task, questions.items, answers, loaded.model);
    if (!words.json) print_row("model", plain_line(loaded.name(words)));
    print_perplexity(words, loaded, result, /*figures=*/{}, {.seconds = seconds - loaded.measure_seconds()});
    if (!words.json) fmt::print("\n");
    return result;
  };
  const auto first = result_of(a, found.a, found.seconds_a), second = result_of(b, found.b, found.seconds_b);
  print_perplexity_difference(words, a.name(words), b.name(words), first, second, found.divergences);
}

void compare_tasks(const EvalWords& words, const std::vector<Questions>& all, LoadedModel& a, LoadedModel& b) {
  TaskPair pair(a.model, b.model);
  for (const auto& questions : all) pair.check(questions.task);
  std::vector<TaskFigures> figures_a, figures_b;
  std::vector<TaskDifference> differences;
  double seconds_a = 0, seconds_b = 0;
  for (const auto& questions : all) {
    auto found = answer_both(questions, pair);
    seconds_a += found.seconds_a;
    seconds_b += found.seconds_b;
    figures_a.push_back(figures_of(questions, found.a, words));
    figures_b.push_back(figures_of(questions, found.b, words));
    differences.push_back({questions.task, differences_of(questions.task, questions.items, found.a, found.b),
                           std::move(found.divergences)});
  }
  const auto print_one = [&](const LoadedModel& loaded, const std::vector<TaskFigures>& figures, double seconds) {
    if (!words.json) print_row("model", plain_line(loaded.name(words)));
    print_results(words, loaded, figures, {.context = pair.context(), .seconds = seconds - loaded.measure_seconds()});
    if (!words.json) fmt::print("\n");
  };
  print_one(a, figures_a, seconds_a);
  print_one(b, figures_b, seconds_b);
  if (words.json) {
    const Json json = {{"task", "difference"},
                       {"model", a.name(words)},
                       {"against", b.name(words)},
                       {"differences", differences_to_json(differences)}};
    fmt::print("{}\n", to_text(json));
  } else {
    print_row("difference", "the first minus the second");
    print_differences(differences);
  }
}

void evaluate_both(const EvalWords& words, const std::vector<Questions>& all, LoadedModel& a, LoadedModel& b) {
  asks_perplexity(words) ? compare_perplexities(words, all.front(), a, b) : compare_tasks(words, all, a, b);
}

}  // namespace

void run_tasks(EvalWords& words) {
  complete_prefill(words.prefill);
  const bool compares = !words.against.empty() || !words.against_prefill.empty();
  PRISM_CHECK(words.against.empty() || words.against_prefill.empty(), "eval",
              "expected --against or --against-prefill; found both; leave one out.");
  PRISM_CHECK(!compares || words.out.empty(), "eval",
              "expected --out for one model; found a comparison; evaluate each model into a folder of its own, and "
              "compare these with prism report --evaluation.");
  PRISM_CHECK(!words.against_prefill.empty() || words.against_sets.empty(), "eval",
              "expected --against-prefill with --against-prefill-set; found none; name a selector.");
  PrefillOptions other_prefill = words.prefill.options;
  if (!words.against_prefill.empty()) {
    other_prefill.selector = words.against_prefill;
    other_prefill.settings =
        settings_from_sets(words.against_prefill, words.against_sets, "eval", "--against-prefill-set");
    Prefill checked(other_prefill);
  }
  complete_questions(words);
  check_is_language_model(words.model);
  if (!words.against.empty()) check_is_language_model(words.against);
  auto all = read_questions(words);
  const ModelFolder folder = load_model_with_tokenizer(words.model, words.compute, "eval");
  check_prefill(folder.decoder->config(), words.prefill.options);
  std::optional<ModelFolder> other;
  int64_t context = folder.decoder->config().context;
  if (!words.against.empty()) {
    other.emplace(load_model_with_tokenizer(words.against, words.compute, "eval"));
    context = std::min(context, other->decoder->config().context);
  }
  if (asks_perplexity(words)) {
    const auto has_budgets = [](const ModelFolder& model) { return layers_with_budgets(model.decoder->config()) > 0; };
    auto& task = all.front().task;
    task = perplexity_task(words.windows, context, has_budgets(folder) || (other && has_budgets(*other)));
    words.windows.window = task.window;
    words.windows.stride = task.stride;
  }
  add_made_questions(words, folder, context, all);
  const auto load = [&](const std::string& path, const ModelFolder& model, const PrefillOptions& options,
                        const std::vector<std::string>& sets) {
    check_prefill(model.decoder->config(), options);
    return std::make_unique<LoadedModel>(path, model, options, sets,
                                         costs_on_this_machine(cost_shapes(options, model.decoder)), words);
  };
  const auto first = load(words.model, folder, words.prefill.options, words.prefill.sets);
  std::unique_ptr<LoadedModel> second;
  if (other) {
    second = load(words.against, *other, words.prefill.options, words.prefill.sets);
  } else if (compares) {
    second = load(words.model, folder, other_prefill, words.against_sets);
  }
  for (const auto* loaded : {first.get(), second.get()})
    for (const auto& [task, items] : all)
      if (loaded != nullptr) loaded->model.check(task);
  second ? evaluate_both(words, all, *first, *second) : evaluate_one(words, all, *first);
  flush_output();
  for (const auto* loaded : {first.get(), second.get()})
    if (loaded != nullptr) say_notes(loaded->prefill.notes());
}

}  // namespace prism
