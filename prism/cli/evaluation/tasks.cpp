// prism eval --task piqa, blimp, ...: what a model, or two of them, answer to the questions of the field.
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
#include "prism/cli/evaluation/questions.h"
#include "prism/cli/evaluation/result_folder.h"
#include "prism/core/console.h"
#include "prism/core/error.h"
#include "prism/core/progress.h"
#include "prism/core/stop.h"
#include "prism/core/text/counted.h"
#include "prism/core/text/printable.h"
#include "prism/core/timer.h"
#include "prism/evaluation/tasks/answers.h"
#include "prism/evaluation/tasks/figures.h"
#include "prism/evaluation/tasks/samples.h"
#include "prism/kernels/compute_type.h"
#include "prism/models/chunks.h"

namespace prism {
namespace {

/// A model with what reads its prompts.
struct LoadedModel {
  LoadedModel(const std::string& name_given, const ModelFolder& folder_given, const PrefillOptions& options,
              const PrefillCosts& costs, const EvalWords& words)
      : name(name_given),
        folder(folder_given),
        meter(words.prefill.meter),
        prefill(options, costs, options.selector == "dense" ? nullptr : &meter),
        model(folder.decoder, *folder.tokenizer, {.prefill = &prefill}, &meter) {}
  LoadedModel(const LoadedModel&) = delete;
  LoadedModel& operator=(const LoadedModel&) = delete;

  std::string dtype() const { return compute_type_name(folder.decoder->compute_type()); }
  int64_t context() const { return folder.decoder->config().context; }

  std::string name;
  const ModelFolder& folder;
  PrefillMeter meter;
  Prefill prefill;
  TaskModel model;
};

/// What the answers depend on.
Json settings_of(const LoadedModel& loaded, const EvalWords& words) {
  const auto& decoder = *loaded.folder.decoder;
  Json settings = {{"model", loaded.name},
                   {"dtype", loaded.dtype()},
                   {"limit", words.items.limit},
                   {"shots", words.items.shots},
                   {"chat_template", words.apply_chat_template},
                   {"selector", loaded.prefill.options().selector},
                   {"selector_settings", loaded.prefill.options().settings},
                   {"chunk", loaded.prefill.options().chunk}};
  for (const auto& [name, value] :
       prompt_fingerprint(decoder, *loaded.folder.tokenizer, loaded.prefill.options(), decoder.compute_type()))
    settings["fingerprint"][name] = value;
  if (asks_made(words)) settings.update({{"samples", words.ruler.samples}, {"seed", words.ruler.seed}});
  if (asks_grid(words)) settings.update({{"grid_lengths", words.ruler.lengths}, {"grid_depths", words.ruler.depths}});
  return settings;
}

/// The progress line of a task.
class TaskProgress {
 public:
  explicit TaskProgress(const Questions& questions)
      : progress_("eval " + questions.task.name, std::ssize(questions.items), "items") {}

  void step(int64_t tokens) {
    tokens_ += tokens;
    show();
  }
  void batch(int64_t items) {
    items_ = items;
    show();
  }

 private:
  void show() { progress_.update(items_, fmt::format("{} tokens", short_number(static_cast<double>(tokens_)))); }

  Progress progress_;
  int64_t items_ = 0, tokens_ = 0;
};

void print_figure_row(const std::string& task, const Figure& figure, const TaskFigures& of, bool shows_density) {
  fmt::print("{:<24}{:>7}  {:<16}{:>10}{:>10}{:>8}", task, task.empty() ? "" : fmt::to_string(of.items), figure.name,
             fmt::format("{:.4f}", figure.value),
             std::isnan(figure.standard_error) ? "" : fmt::format("{:.4f}", figure.standard_error),
             of.task.chance == 0 || is_less_better(figure.name) ? "" : fmt::format("{:.2f}", of.task.chance));
  fmt::print("{}\n", shows_density && !task.empty() ? fmt::format("{:>9.3f}", of.density) : "");
}

/// One row for each figure; of a group that is whole, one row for all its parts.
void print_figures(const std::vector<TaskFigures>& all, bool shows_density) {
  fmt::print("{:<24}{:>7}  {:<16}{:>10}{:>10}{:>8}{}\n", "task", "items", "figure", "value", "+- error", "chance",
             shows_density ? "  density" : "");
  const auto groups = groups_of(all);
  for (const auto& each : all) {
    if (std::ranges::any_of(groups, [&](const auto& group) { return group.first == each.task.group; })) continue;
    for (const auto& figure : each.figures)
      print_figure_row(figure.name == each.figures.front().name ? each.task.name : "", figure, each, shows_density);
  }
  for (const auto& [name, figure] : groups) {
    TaskFigures whole{.task = {}, .figures = {}};
    std::vector<double> densities;
    for (const auto& each : all) {
      if (each.task.group != name) continue;
      whole.task = each.task;
      whole.items += each.items;
      densities.push_back(each.density);
    }
    whole.density = mean_of(densities);
    print_figure_row(name, figure, whole, shows_density);
  }
}

void print_cut(const std::vector<TaskFigures>& all, int64_t context) {
  int64_t cut = 0;
  for (const auto& each : all) cut += each.cut;
  if (cut > 0)
    print_row("cut", fmt::format("{}, at the beginning, to the context of {} tokens", counted(cut, "text"), context));
}

int64_t cut_of(const std::vector<ItemAnswers>& answers) {
  int64_t cut = 0;
  for (const auto& each : answers) cut += each.cut;
  return cut;
}

TaskFigures figures_of(const Questions& questions, const std::vector<ItemAnswers>& answers, const EvalWords& words) {
  return {.task = questions.task,
          .figures = figures_of(questions.task, questions.items, answers),
          .items = std::ssize(questions.items),
          .cut = cut_of(answers),
          .shots = words.items.shots,
          .density = density_of(answers)};
}

/// Prints the figures of one model. @param context  to which texts were cut. @param seconds  0: not stated.
void print_results(const EvalWords& words, const LoadedModel& loaded, const std::vector<TaskFigures>& figures,
                   int64_t context, double seconds) {
  if (words.json) {
    Json json = results_to_json(figures, settings_of(loaded, words), Json());
    json["prefill"] = prefill_to_json(loaded.prefill.options(), loaded.meter.layers());
    if (seconds > 0) json["seconds"] = seconds;
    fmt::print("{}\n", to_text(json));
    return;
  }
  print_figures(figures, loaded.prefill.selects());
  print_cut(figures, context);
  if (loaded.prefill.selects()) print_row("attention", prefill_text(loaded.prefill.options(), loaded.meter.layers()));
  print_row("computed in",
            seconds > 0 ? fmt::format("{}, {}", loaded.dtype(), short_duration(seconds)) : loaded.dtype());
}

void evaluate_one(const EvalWords& words, const std::vector<Questions>& all, LoadedModel& loaded) {
  std::optional<ResultFolder> folder;
  if (!words.out.empty()) folder.emplace(words.out, settings_of(loaded, words));
  const Timer timer;
  std::vector<TaskFigures> figures;
  for (const auto& questions : all) {
    std::optional<SampleFile> file;
    if (folder) file.emplace(folder->samples(questions.task), questions.task, questions.items);
    TaskProgress progress(questions);
    try {
      const auto answers = answer_all(
          loaded.model, questions.task, questions.items, file ? &*file : nullptr,
          [&](int64_t tokens) { progress.step(tokens); }, [&](int64_t items) { progress.batch(items); });
      figures.push_back(figures_of(questions, answers, words));
    } catch (const FailedError&) {
      if (stop_signal() == 0 || !folder) throw;
      throw FailedError("eval", fmt::format("stopped by a signal; the answers so far are in {}, and the same command "
                                            "resumes.",
                                            plain_line(words.out)));
    }
  }
  if (folder) folder->write(figures);
  print_results(words, loaded, figures, loaded.context(), timer.seconds());
}

/// How far one model's distributions are from another's, over tokens.
struct TokenDivergence {
  std::vector<double> nats;

  Json to_json() const {
    if (nats.empty()) return {};
    const auto parts = quantiles(nats, {0.95, 0.99});
    return {{"tokens", nats.size()}, {"mean", mean_of(nats)}, {"p95", parts[0]}, {"p99", parts[1]}};
  }
};

void print_differences(const Questions& questions, const std::vector<FigureDifference>& differences,
                       const TokenDivergence& divergence) {
  for (const auto& [name, paired] : differences) {
    print_row(name == differences.front().name ? questions.task.name : "",
              fmt::format("{:<16}{:+.4f}{}{}", name, paired.difference,
                          paired.items < 2 ? std::string()
                                           : fmt::format(" +- {:.4f} (95%: {})", paired.standard_error,
                                                         interval_text(paired.interval, 4)),
                          std::isnan(paired.p) ? std::string()
                                               : fmt::format("; {} better, {} worse, sign test: p = {:.3g}",
                                                             paired.more_a, paired.more_b, paired.p)));
  }
  const auto json = divergence.to_json();
  if (json.is_null()) return;
  print_row("", fmt::format("KL of {} scored tokens: mean {:.3g} nats, 95th percentile {:.3g}, 99th {:.3g}",
                            divergence.nats.size(), json["mean"].get<double>(), json["p95"].get<double>(),
                            json["p99"].get<double>()));
}

void evaluate_both(const EvalWords& words, const std::vector<Questions>& all, LoadedModel& a, LoadedModel& b) {
  TaskPair pair(a.model, b.model);
  std::vector<TaskFigures> figures_a, figures_b;
  std::vector<std::vector<FigureDifference>> differences;
  std::vector<TokenDivergence> divergences;
  for (const auto& questions : all) {
    TaskProgress progress(questions);
    TaskPair::Answers found;
    for (std::span<const TaskItem> rest(questions.items); !rest.empty();) {
      const auto batch = next_items(rest);
      auto more = pair.answer(questions.task, batch, [&](int64_t tokens) { progress.step(tokens); });
      std::ranges::move(more.a, std::back_inserter(found.a));
      std::ranges::move(more.b, std::back_inserter(found.b));
      std::ranges::move(more.divergences, std::back_inserter(found.divergences));
      rest = rest.subspan(batch.size());
      progress.batch(std::ssize(found.a));
    }
    figures_a.push_back(figures_of(questions, found.a, words));
    figures_b.push_back(figures_of(questions, found.b, words));
    differences.push_back(differences_of(questions.task, questions.items, found.a, found.b));
    divergences.push_back({std::move(found.divergences)});
  }
  for (const auto& [loaded, figures] : {std::pair{&a, &figures_a}, {&b, &figures_b}}) {
    if (!words.json) print_row("model", plain_line(loaded->name));
    print_results(words, *loaded, *figures, std::min(a.context(), b.context()), 0);
    if (!words.json) fmt::print("\n");
  }
  if (!words.json) print_row("difference", "the first minus the second");
  Json json = {{"task", "difference"}, {"model", a.name}, {"against", b.name}, {"differences", Json::object()}};
  for (size_t i = 0; i < all.size(); ++i) {
    if (!words.json) {
      print_differences(all[i], differences[i], divergences[i]);
      continue;
    }
    auto& of_task = json["differences"][all[i].task.name];
    for (const auto& [name, paired] : differences[i])
      of_task[name] = {{"difference", paired.difference},
                       {"standard_error", paired.standard_error},
                       {"low", paired.interval.low},
                       {"high", paired.interval.high},
                       {"better", paired.more_a},
                       {"worse", paired.more_b},
                       {"p", paired.p}};
    of_task["divergence"] = divergences[i].to_json();
  }
  if (words.json) fmt::print("{}\n", to_text(json));
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
  auto all = read_questions(words);
  check_is_language_model(words.model);
  const ModelFolder folder = load_model_with_tokenizer(words.model, words.compute, "eval");
  check_prefill(folder.decoder->config(), words.prefill.options);
  std::optional<ModelFolder> other;
  int64_t context = folder.decoder->config().context;
  if (!words.against.empty()) {
    check_is_language_model(words.against);
    other.emplace(load_model_with_tokenizer(words.against, words.compute, "eval"));
    context = std::min(context, other->decoder->config().context);
  }
  add_made_questions(words, folder, context, all);
  const auto load = [&](const std::string& name, const ModelFolder& model, const PrefillOptions& options) {
    check_prefill(model.decoder->config(), options);
    return std::make_unique<LoadedModel>(name, model, options,
                                         costs_on_this_machine(cost_shapes(options, model.decoder)), words);
  };
  const auto first = load(words.model, folder, words.prefill.options);
  if (!compares) {
    evaluate_one(words, all, *first);
  } else if (other) {
    evaluate_both(words, all, *first, *load(words.against, *other, words.prefill.options));
  } else {
    const auto name = fmt::format("{} with {} attention", words.model, words.against_prefill);
    evaluate_both(words, all, *first, *load(name, folder, other_prefill));
  }
  flush_output();
}

}  // namespace prism
