// prism sweep: trains the runs of a sweep as child processes, then compares them.
#include <algorithm>
#include <filesystem>
#include <optional>

#include "prism/bench/sweep_timing.h"
#include "prism/cli/command.h"
#include "prism/cli/options/compute_options.h"
#include "prism/cli/recorded_run.h"
#include "prism/cli/sweep_runner.h"
#include "prism/core/console.h"
#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/core/machine.h"
#include "prism/core/stop.h"
#include "prism/core/text/counted.h"
#include "prism/core/text/field_names.h"
#include "prism/models/device.h"
#include "prism/report/compare/cost.h"
#include "prism/report/compare/verdict.h"
#include "prism/report/draw/number_text.h"
#include "prism/report/page/markdown.h"
#include "prism/report/page/page.h"
#include "prism/report/tables/summary.h"
#include "prism/training/recipe.h"
#include "prism/training/sweep/schedule_sweep.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSearchTimingSteps = 8;

struct SweepWords {
  std::string file, out, records, search, device = "cpu";
  std::vector<std::string> sets;
  int jobs = 1, threads = 0;
  int64_t timing_steps = 0;
  bool plan = false, json = false;
};

std::string sweep_help() {
  std::string text = "Fields of a sweep's JSON file:\n";
  for (const auto& row : describe_fields<SweepFile>())
    text += fmt::format("  {:<27} {}{}\n", row.path, row.help,
                        row.path.starts_with("search.") ? fmt::format(" [{}]", row.default_value) : "");
  return text + R"(
  {"recipe": "../head_schedules/novels_uniform.json", "seeds": [1, 2, 3], "baseline": "uniform",
   "arms": {"uniform": {"model.schedule": "8x8"}, "progressive": {"model.schedule": "2x2,4x2,8x4"}},
   "grid": {"train.learning_rate": [0.0005, 0.001]}}

Each run has a folder: OUT/ARM-seedN, or with a grid, say, OUT/uniform_learning_rate=0.001-seed1. The same command,
given again, skips runs that have finished or diverged, resumes those that have begun, and starts the rest. Runs are
identified by recipe and seed. Ctrl-C saves the active runs. At the end, OUT/report.html and OUT/report.md compare the
arms; differences are paired by seed.

With --search schedules, the file has no arms. Head schedules of the search space, all or a sample, train for few tokens
in OUT/rung1; the best of them train for more in OUT/rung2, and so on. Each rung also trains the uniform schedule. The
schedules of the last rung are timed, and a table marks those that are Pareto-optimal in loss and tokens/s.

  prism sweep configs/sweeps/ablation.json --plan                  # what would run
  prism sweep configs/sweeps/search.json --search schedules --jobs 2
  prism sweep configs/sweeps/novels.json --jobs 2 --set train.tokens=1M
)";
}

/// The overrides of --set. Faults that do not depend on an arm are reported here, since load_sweep() would name an arm.
std::vector<Override> overrides_of(const SweepWords& words) {
  auto overrides = overrides_from_sets(words.sets, "sweep");
  Recipe any;
  for (const Override& given : overrides)
    if (given.first.find('[') == std::string::npos)  // elements of lists, which `any` does not have
      naming_field("--set", [&] { set_field(any, given.first, given.second); });
  return overrides;
}

void print_plan(const std::vector<SweepRun>& runs) {
  const char* states[] = {"to do", "begun", "finished", "diverged"};
  size_t width = std::string("run").size();
  for (const auto& run : runs) width = std::max(width, run.name.size());
  fmt::print("{:<{}}  {:<10}{}\n", "run", width, "state", "folder");
  for (const auto& run : runs)
    fmt::print("{:<{}}  {:<10}{}\n", run.name, width, states[static_cast<size_t>(run.state)], run.folder.string());
}

/// Prints one object per arm: its final validation loss over seeds, and the paired difference to the baseline. The loss
/// is null if the arm has none at the number of tokens that all arms have reached.
/// @param rung  rung of a search, counted from 1; 0: no search.
void print_json(const Comparison& comparison, int64_t rung) {
  const auto finals = final_losses(comparison);
  for (size_t index = 0; index < comparison.groups.size(); ++index) {
    const auto& group = comparison.groups[index];
    const auto found =
        std::find_if(finals.groups.begin(), finals.groups.end(), [&](const auto& of) { return of.group == index; });
    const Statistic loss = found == finals.groups.end() ? Statistic{} : found->loss;
    Json json = {{"arm", group.label},
                 {"baseline", comparison.groups[comparison.baseline].label},
                 {comparison.counted(), finals.trained},
                 {"seeds", group.runs.size()},
                 {comparison.metric.name, loss.count > 0 ? Json(loss.mean) : Json()},
                 {comparison.metric.name + "_sd", loss.count > 1 ? Json(loss.deviation) : Json()}};
    if (rung > 0) json["rung"] = rung;
    if (const auto& timing = group.runs.front().timing)
      json.update({{"tokens_per_s", timing->tokens_per_s}, {"speed_ratio", timing->ratio}});
    if (index != comparison.baseline) {
      if (const auto gap = final_difference(group, comparison.groups[comparison.baseline])) {
        const auto& [seeds, difference, interval] = gap->loss;
        json.update({{"difference", difference.mean},
                     {"difference_sd", difference.count > 1 ? Json(difference.deviation) : Json()},
                     {"low", gap->loss.has_interval() ? Json(interval.low) : Json()},
                     {"high", gap->loss.has_interval() ? Json(interval.high) : Json()},
                     {"pairs", seeds.size()}});
      }
    }
    fmt::print("{}\n", to_text(json));
  }
}

/// Compares the runs that ended, and writes the report into `out`.
Comparison compare(const fs::path& out, const Sweep& sweep, const std::vector<SweepRun>& runs,
                   std::vector<std::string>* problems) {
  const std::string& baseline = sweep.arms[0].name;
  std::vector<Run> ended;
  bool has_baseline = false;
  for (const auto& run : runs) {
    if (!run.ended()) continue;
    ended.push_back(read_recorded_run(run.folder));
    ended.back().name = run.arm;  // its arm may have had another name when it ran
    has_baseline |= run.arm == baseline;
  }
  if (!has_baseline)
    throw FailedError("sweep", fmt::format("expected a run of the baseline {} that ended; found none; see {}.",
                                           baseline, (out / "logs").string()));
  Comparison comparison = compare_runs(std::move(ended), baseline);
  write_file(out / "report.html", report_html(comparison, {}, problems));
  write_file(out / "report.md", report_markdown(comparison, {}));
  return comparison;
}

/// @param rung  as print_json().
Comparison print_comparison(const SweepWords& words, const fs::path& out, const Sweep& sweep,
                            const std::vector<SweepRun>& runs, int64_t rung = 0) {
  std::vector<std::string> problems;
  auto comparison = compare(out, sweep, runs, &problems);
  if (words.json)
    print_json(comparison, rung);
  else
    fmt::print("{}\n{}\n", table_text(results_table(comparison)), (out / "report.html").string());
  flush_output();
  for (const auto& problem : problems) tell("note: {}\n", problem);
  return comparison;
}

/// Times every arm and writes the timing beside the records of its runs. @return  false if stopped by a signal.
bool time_runs(const SweepWords& words, const fs::path& records, const Sweep& sweep, const std::vector<SweepRun>& runs,
               int64_t steps) {
  const int threads = start_compute(words.threads);
  const auto timings = time_arms(sweep, {.steps = steps, .threads = threads});
  if (stop_signal() != 0) {
    say("sweep: stopped before all arms were timed; the same command continues it\n");
    return false;
  }
  for (const auto& [arm, timing] : timings)
    for (const auto& run : runs) {
      if (run.arm != arm || run.state != SweepRun::State::finished) continue;
      const std::string text = to_text(fields_to_json(timing), 2) + "\n";
      write_file(run.folder / kRunTimingName, text);
      if (!records.empty()) write_file(records / run.name / kRunTimingName, text);
    }
  return true;
}

bool all_timed(const std::vector<SweepRun>& runs) {
  return std::all_of(runs.begin(), runs.end(), [](const SweepRun& run) {
    return run.state != SweepRun::State::finished || fs::exists(run.folder / kRunTimingName);
  });
}

/// Trains all runs of a sweep in `out`. Prints each failure and adds to `failures`. @return  false if stopped by a
/// signal.
bool run_all(const SweepWords& words, const std::string& name, const fs::path& out, const fs::path& records,
             const Sweep& sweep, std::vector<SweepRun>& runs, size_t& failures) {
  for (const char* folder : {"logs", "recipes"}) make_folder(out / folder);
  runs = plan_sweep(sweep, out, records);
  const int threads = std::max(1, thread_limit(words.threads).threads / words.jobs);
  SweepRunner runner({out, records, words.jobs, threads, words.device, name}, sweep, runs);
  const bool done = runner.run();
  for (const auto& failure : runner.failures()) say("[sweep] expected every run to finish; found {}\n", failure);
  failures += runner.failures().size();
  return done;
}

/// The mean final validation loss of each schedule; NaN if none of its runs finished or one diverged.
std::vector<double> losses_of(const std::vector<HeadSchedule>& schedules, const std::vector<SweepRun>& runs) {
  std::vector<double> losses;
  for (const auto& schedule : schedules) {
    std::vector<double> values;
    for (const auto& run : runs) {
      if (run.arm != format_head_schedule(schedule) || !run.ended()) continue;
      const Run read = read_recorded_run(run.folder);
      if (read.diverged)
        values.push_back(std::nan(""));
      else if (!read.valid.empty())
        values.push_back(read.valid.back().loss);
    }
    losses.push_back(statistic(values).count > 0 ? statistic(values).mean : std::nan(""));
  }
  return losses;
}

/// Prints the schedules of the last rung, the fastest last, and marks those that no other beats.
void print_front(const Comparison& comparison) {
  const std::string metric = comparison.metric.noun();
  Table table{comparison.metric.is_loss() ? "Loss against rate" : metric + " against rate",
              {{"schedule"}, {"val " + metric, true}, {"tokens/s", true}, {"on the front"}},
              {},
              {}};
  for (const auto& point : cost_points(comparison))
    table.rows.push_back({{comparison.groups[point.group].label},
                          {fmt::format("{:.4f}", point.loss.mean)},
                          {fmt::format("{:.0f}", point.rate.mean)},
                          {point.on_front ? "yes" : ""}});
  table.notes.push_back(
      fmt::format("On the front: no other schedule is at least as {} in {} and as fast (Pareto). Only schedules "
                  "of the last rung are timed; those dropped earlier, by {}, may be faster.",
                  comparison.metric.less_is_better ? "low" : "high", metric, metric));
  fmt::print("\n{}", table_text(table));
}

std::string rung_name(int64_t rung) {
  return fmt::format("rung{}", rung + 1);
}

void print_rungs(const ScheduleSearch& search) {
  fmt::print("{} of {}, each with {}. Tokens per run, and schedules besides the uniform one:\n",
             search.candidates.size(), counted(search.proposed, "schedule"), counted(std::ssize(search.seeds), "seed"));
  auto schedules = search.candidates;
  for (int64_t rung = 0; rung < search.options.rungs; ++rung) {
    fmt::print("  {:<8}{:>12} tokens{:>18}\n", rung_name(rung), grouped(rung_tokens(search, rung)),
               counted(std::ssize(schedules), "schedule"));
    schedules = best_schedules(search, schedules, std::vector<double>(schedules.size()), Metric());
  }
  for (const auto& schedule : search.candidates) fmt::print("{}\n", format_head_schedule(schedule));
}

/// Makes both folders before anything is trained.
void make_folders(const SweepWords& words) {
  for (const auto& folder : {words.records, words.out}) {
    std::error_code unreachable;
    PRISM_CHECK(!fs::exists(folder, unreachable) || fs::is_directory(folder, unreachable), "sweep",
                "expected a folder or a new name; found the file {}; name another.", folder);
    if (!folder.empty()) make_folder(folder);
  }
}

int search_schedules(const SweepWords& words, const std::vector<Override>& overrides) {
  const auto search = load_schedule_search(words.file, overrides);
  if (words.plan) {
    print_rungs(search);
    return 0;
  }
  PRISM_CHECK(data_of_run(search.base).validation.has_value(), "sweep",
              "expected validation data to rank schedules by; found none in {}; run prism tokenize with "
              "--valid-share.",
              search.base.data.folder);
  make_folders(words);
  const FolderLock lock(words.out, "sweep");
  catch_stop_signals();
  auto schedules = search.candidates;
  size_t failures = 0;
  for (int64_t rung = 0; rung < search.options.rungs; ++rung) {
    const fs::path out = fs::path(words.out) / rung_name(rung);
    const fs::path records = words.records.empty() ? fs::path() : fs::path(words.records) / rung_name(rung);
    const Sweep sweep = rung_of(search, rung, schedules);
    std::vector<SweepRun> runs;
    if (!run_all(words, rung_name(rung), out, records, sweep, runs, failures)) return 1;
    const bool last = rung + 1 == search.options.rungs;
    const int64_t steps = words.timing_steps > 0 ? words.timing_steps : all_timed(runs) ? 0 : kSearchTimingSteps;
    if (last && steps > 0 && !time_runs(words, records, sweep, runs, steps)) return 1;
    const auto comparison = print_comparison(words, out, sweep, runs, rung + 1);
    if (last && !words.json) print_front(comparison);
    schedules = best_schedules(search, schedules, losses_of(schedules, runs), comparison.metric);
    if (schedules.empty())
      throw FailedError("sweep", fmt::format("expected a validation loss of a schedule of {}; found none; "
                                             "see the logs in {}.",
                                             rung_name(rung), out.string()));
  }
  return failures == 0 ? 0 : 1;
}

}  // namespace

int run_sweep(const Arguments& arguments) {
  SweepWords words;
  CLI::App app("Train variations of a recipe over several seeds and compare them.", "prism sweep");
  app.add_option("FILE", words.file, "the sweep, a JSON file (see below)")->required();
  app.add_option("--out", words.out, "folder for runs and report")->type_name("FOLDER")->default_str("runs/<file>");
  app.add_option("--records", words.records,
                 "copy recipe and records of finished runs to this folder, and skip runs that are already there");
  app.add_option("--set", words.sets,
                 "FIELD=VALUE: override one recipe field in all variations (arms); may be repeated")
      ->allow_extra_args(false);
  app.add_option("--jobs", words.jobs, "runs that train at the same time; they share the threads")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  add_device_option(app, words.device);
  add_threads_option(app, words.threads);
  app.add_option("--search", words.search,
                 "find a head schedule by successive halving, instead of comparing the arms in FILE; the only value is "
                 "schedules")
      ->type_name("schedules");
  app.add_option(
         "--timing-steps", words.timing_steps,
         "after training, measure the tokens/s of each arm over this many steps, alternating with the baseline; 0: "
         "take the tokens/s of the runs; with --search, 0 stands for 8 steps")
      ->check(CLI::Range(0, 100000))
      ->capture_default_str();
  app.add_flag("--plan", words.plan, "show the runs and their states, then exit");
  app.add_flag("--json", words.json, "print one JSON object per arm instead of the table");
  app.footer(sweep_help());
  if (!parse(app, arguments, "1 failed or stopped before the end")) return 0;
  check_threads(words.threads);
  if (words.out.empty()) words.out = (fs::path("runs") / fs::path(words.file).stem()).string();

  const auto overrides = overrides_of(words);
  open_device(words.device);  // reports a missing device before any run begins
  if (!words.search.empty()) {
    PRISM_CHECK(words.search == "schedules", "sweep", "expected --search schedules; found \"{}\"; write schedules.",
                words.search);
    return search_schedules(words, overrides);
  }
  const Sweep sweep = load_sweep(words.file, overrides);
  PRISM_CHECK(words.timing_steps == 0 || unit_of(sweep.arms[0].recipe) == TrainingUnit::tokens, "sweep",
              "expected --timing-steps only with language models; found a sweep of classifiers; leave it out.");
  if (words.plan) {
    print_plan(plan_sweep(sweep, words.out, words.records));
    return 0;
  }
  make_folders(words);
  const FolderLock lock(words.out, "sweep");
  catch_stop_signals();
  std::vector<SweepRun> runs;
  size_t failures = 0;
  if (!run_all(words, "sweep", words.out, words.records, sweep, runs, failures)) return 1;
  if (words.timing_steps > 0 && !time_runs(words, words.records, sweep, runs, words.timing_steps)) return 1;
  print_comparison(words, words.out, sweep, runs);
  return failures == 0 ? 0 : 1;
}

}  // namespace prism
