// prism sweep: the runs of a sweep as child processes, then their comparison.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>
#include <thread>

#include "prism/cli/command.h"
#include "prism/core/console.h"
#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/core/machine.h"
#include "prism/core/progress.h"
#include "prism/core/records.h"
#include "prism/core/stop.h"
#include "prism/core/timer.h"
#include "prism/report/page.h"
#include "prism/report/summary.h"
#include "prism/report/verdict.h"
#include "prism/training/sweep.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOperation = "sweep";

struct Words {
  std::string file, out, records;
  std::vector<std::string> sets;
  int jobs = 1, threads = 0;
  bool plan = false, json = false;
};

std::string fields_help() {
  std::string text = "A sweep's file:\n";
  for (const auto& row : describe_fields<SweepFile>()) text += fmt::format("  {:<14} {}\n", row.path, row.help);
  return text + R"(
  {"recipe": "../head_schedules/novels_uniform.json", "seeds": [1, 2, 3], "baseline": "uniform",
   "arms": {"uniform": {"model.schedule": "8x8"}, "progressive": {"model.schedule": "2x2,4x2,8x4"}},
   "grid": {"train.learning_rate": [0.0005, 0.001]}}

Runs lie in OUT/ARM-seedN. Called again, the sweep skips what is finished, goes on with what is begun, and starts the
rest; runs are known by recipe and seed. Ctrl-C saves the runs at work. At the end OUT/report.html and OUT/report.md
compare the arms; differences are paired by seed.

  prism sweep configs/sweeps/schedules.json --plan                # what would run
  prism sweep configs/sweeps/schedules.json --jobs 2 --set train.tokens=1M
)";
}

/// A run at work.
struct Child {
  pid_t process = -1;
  size_t run = 0;
};

/// Starts prism with these words; what it says goes to `log`. It dies with us, so that no run is left without a sweep.
pid_t start_child(const std::vector<std::string>& words, const fs::path& log) {
  // The program as it runs, even if its file was replaced meanwhile.
  constexpr const char* kProgram = "/proc/self/exe";
  std::vector<char*> arguments = {const_cast<char*>("prism")};
  for (const auto& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const Descriptor output(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  const pid_t parent = ::getpid(), child = ::fork();
  if (child < 0 || output.get() < 0)
    throw FailedError(kOperation, fmt::format("cannot start a run that writes to {}: {}.", log.string(),
                                              std::error_code(errno, std::generic_category()).message()));
  if (child > 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  ::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO);
  ::dup2(output.get(), STDOUT_FILENO);
  ::dup2(output.get(), STDERR_FILENO);
  ::execv(kProgram, arguments.data());
  ::_exit(1);
}

std::string last_line(const fs::path& log) {
  const std::string text = read_file(log);
  const size_t end = text.find_last_not_of('\n');
  if (end == std::string::npos) return "it said nothing";
  const size_t begin = text.rfind('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1,
                     end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

/// Runs what a sweep still needs, a few at a time.
class SweepRunner {
 public:
  SweepRunner(const Words& words, const Sweep& sweep, std::vector<SweepRun>& runs)
      : words_(words), sweep_(sweep), runs_(runs), progress_("sweep", total_tokens(), " tokens", done_tokens()) {
    for (size_t i = 0; i < runs.size(); ++i)
      if (runs[i].state != SweepRun::State::finished) waiting_.push_back(i);
    std::reverse(waiting_.begin(), waiting_.end());
    threads_ = std::max(1, thread_limit(words.threads).threads / words.jobs);
  }

  /// @return  false if a signal came before all were done. Runs that failed are in failures().
  bool run() {
    while (!waiting_.empty() || !children_.empty()) {
      if (stop_signal() != 0) return stop();
      while (!waiting_.empty() && children_.size() < static_cast<size_t>(words_.jobs)) start_next();
      for (auto child = children_.begin(); child != children_.end();) {
        int status = 0;
        if (::waitpid(child->process, &status, WNOHANG) == 0) {
          ++child;
          continue;
        }
        finish(*child, status);
        child = children_.erase(child);
      }
      show();
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
    progress_.finish(fmt::format("sweep: {} runs, {} failed", runs_.size(), failures_.size()));
    return true;
  }

  const std::vector<std::string>& failures() const { return failures_; }

 private:
  fs::path log_of(const SweepRun& run) const { return fs::path(words_.out) / "logs" / (run.name + ".txt"); }

  void start_next() {
    const size_t index = waiting_.back();
    waiting_.pop_back();
    const auto& run = runs_[index];
    std::vector<std::string> words = {"train", "--out", run.folder.string(), "--threads", std::to_string(threads_)};
    if (run.state == SweepRun::State::begun) {
      words.push_back("--resume");
    } else {
      const fs::path recipe = fs::path(words_.out) / "recipes" / (run.name + ".json");
      write_file(recipe, to_text(fields_to_json(run.recipe), 2) + "\n");
      words.insert(words.end(), {"--recipe", recipe.string()});
    }
    children_.push_back({start_child(words, log_of(run)), index});
  }

  void finish(const Child& child, int status) {
    auto& run = runs_[child.run];
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
      run.state = SweepRun::State::finished;
      keep(run);
      return;
    }
    if (stop_signal() != 0) return;  // it was stopped with us
    failures_.push_back(fmt::format("{}: {}", run.name, last_line(log_of(run))));
    progress_.note("sweep: " + failures_.back());
  }

  /// What the sweep wants of a finished run.
  void keep(const SweepRun& run) {
    if (!words_.records.empty()) {
      const fs::path copy = fs::path(words_.records) / run.name;
      make_folder(copy);
      // The records last: they make the copy count.
      for (const char* name : {kRunRecipeName, kRunRecordsName}) write_file(copy / name, read_file(run.folder / name));
    }
    if (!sweep_.keep_checkpoints) fs::remove_all(run.folder / "checkpoints");
  }

  bool stop() {
    for (const auto& child : children_) ::kill(child.process, SIGTERM);
    for (const auto& child : children_) {
      int status = 0;
      ::waitpid(child.process, &status, 0);
      finish(child, status);
    }
    progress_.finish("sweep: stopped, runs are saved; go on with the same command");
    return false;
  }

  static int64_t tokens_of(const SweepRun& run) { return run.recipe.train.tokens; }

  int64_t total_tokens() const {
    int64_t sum = 0;
    for (const auto& run : runs_) sum += tokens_of(run);
    return sum;
  }

  int64_t done_tokens() const {
    int64_t sum = 0;
    for (const auto& run : runs_) sum += run.state == SweepRun::State::finished ? tokens_of(run) : 0;
    return sum;
  }

  /// Every few seconds: it reads what the runs at work have recorded.
  void show() {
    constexpr double kBetween_s = 5;
    if (shown_ && since_shown_.seconds() < kBetween_s) return;
    shown_ = true;
    since_shown_.restart();
    int64_t done = done_tokens();
    std::string names;
    for (const auto& child : children_) {
      const auto& run = runs_[child.run];
      names += (names.empty() ? "" : ", ") + run.name;
      if (!fs::exists(run.folder / kRunRecordsName)) continue;
      const auto records = read_records(run.folder / kRunRecordsName);
      if (!records.empty()) done += std::min(tokens_of(run), records.back().value("tokens", int64_t{0}));
    }
    const auto finished = std::count_if(runs_.begin(), runs_.end(),
                                        [](const auto& run) { return run.state == SweepRun::State::finished; });
    progress_.update(done, fmt::format("{} of {} runs | {}", finished, runs_.size(), names));
  }

  const Words& words_;
  const Sweep& sweep_;
  std::vector<SweepRun>& runs_;
  Progress progress_;
  std::vector<size_t> waiting_;  ///< indices of runs, the next one last
  std::vector<Child> children_;
  std::vector<std::string> failures_;
  Timer since_shown_;
  bool shown_ = false;
  int threads_ = 1;
};

void print_plan(const std::vector<SweepRun>& runs) {
  const char* states[] = {"to do", "begun", "finished"};
  fmt::print("{:<40}{:<10}{}\n", "run", "state", "folder");
  for (const auto& run : runs)
    fmt::print("{:<40}{:<10}{}\n", run.name, states[static_cast<size_t>(run.state)], run.folder.string());
}

/// An object for each arm: its final validation loss over seeds, and the paired difference to the baseline.
void print_json(const Comparison& comparison) {
  const auto finals = final_losses(comparison);
  for (const auto& [index, loss] : finals.groups) {
    const auto& group = comparison.groups[index];
    Json json = {{"arm", group.label},
                 {"tokens", finals.tokens},
                 {"seeds", loss.count},
                 {"val_loss", loss.mean},
                 {"val_loss_sd", loss.count > 1 ? Json(loss.deviation) : Json()}};
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

void compare(const Words& words, const std::vector<SweepRun>& runs) {
  std::vector<Run> finished;
  for (const auto& run : runs)
    if (run.state == SweepRun::State::finished) finished.push_back(read_run(run.folder));
  PRISM_CHECK(!finished.empty(), kOperation, "expected a finished run to compare; found none; see {}.",
              (fs::path(words.out) / "logs").string());
  const Comparison comparison = compare_runs(std::move(finished));
  std::vector<std::string> problems;
  const fs::path out = words.out;
  write_file(out / "report.html", report_html(comparison, {}, &problems));
  write_file(out / "report.md", report_markdown(comparison, {}));
  if (words.json)
    print_json(comparison);
  else
    fmt::print("{}\n{}\n", table_text(results_table(comparison)), (out / "report.html").string());
  for (const auto& problem : problems) say("note: {}\n", problem);
}

}  // namespace

int run_sweep(const Arguments& arguments) {
  Words words;
  CLI::App app("Trains one recipe in variations, each with the same seeds, and compares them.", "prism sweep");
  app.add_option("FILE", words.file, "the sweep's file")->required();
  app.add_option("--out", words.out, "folder of the sweep  [runs/<file>]");
  app.add_option("--records", words.records,
                 "a folder for recipe and records of finished runs, which also count as finished when found there");
  app.add_option("--set", words.sets, "FIELD=VALUE: override one recipe field of all arms")->allow_extra_args(false);
  app.add_option("--jobs", words.jobs, "runs at the same time, which share the threads")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  add_threads_option(app, words.threads);
  app.add_flag("--plan", words.plan, "show the runs and what is done of them, and stop");
  app.add_flag("--json", words.json, "print one JSON object an arm instead of the table");
  app.footer(fields_help());
  if (!parse(app, arguments, "1 failed or stopped before the end")) return 0;
  if (words.out.empty()) words.out = (fs::path("runs") / fs::path(words.file).stem()).string();

  const Sweep sweep = load_sweep(words.file, overrides_from_sets(words.sets, kOperation));
  auto runs = plan_sweep(sweep, words.out, words.records);
  if (words.plan) {
    print_plan(runs);
    return 0;
  }
  for (const char* name : {"logs", "recipes"}) make_folder(fs::path(words.out) / name);
  const FolderLock lock(words.out, kOperation);
  runs = plan_sweep(sweep, words.out, words.records);  // again: another process may have gone on until now
  catch_stop_signals();
  SweepRunner runner(words, sweep, runs);
  if (!runner.run()) return 1;
  compare(words, runs);
  for (const auto& failure : runner.failures()) say("[sweep] expected every run to finish; found {}\n", failure);
  return runner.failures().empty() ? 0 : 1;
}

}  // namespace prism
