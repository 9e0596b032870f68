#include "prism/cli/sweep_runner.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/core/stop.h"
#include "prism/records/run_event.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

/// Starts prism with these arguments and its output in `log`. It is killed when this process ends, so that no run
/// outlives its sweep.
pid_t start_child(const std::vector<std::string>& words, const fs::path& log) {
  // The running program, even if its file has been replaced.
  constexpr const char* kProgram = "/proc/self/exe";
  std::vector<char*> arguments = {const_cast<char*>("prism")};
  for (const auto& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const Descriptor output = open_output(log, O_WRONLY | O_APPEND, "sweep");
  const pid_t parent = ::getpid(), child = ::fork();
  if (child < 0)
    throw FailedError("sweep", fmt::format("expected to start a run; found: {}; choose fewer --jobs.",
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
  if (end == std::string::npos) return "it printed nothing";
  const size_t begin = text.rfind('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1,
                     end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

/// Tokens or examples trained on so far, from the run's records.
int64_t done_of(const SweepRun& run) {
  const int64_t whole = training_size(run.recipe);
  if (run.ended()) return whole;
  const auto last = last_run_event(run.folder);
  return last ? std::min(whole, last->head.trained.value().value_or(0)) : 0;
}

}  // namespace

SweepRunner::SweepRunner(SweepRunnerOptions options, const Sweep& sweep, std::vector<SweepRun>& runs)
    : options_(std::move(options)),
      sweep_(sweep),
      runs_(runs),
      progress_(options_.name, total(), fmt::format(" {}", noun_of(unit_of(runs[0].recipe))), done()) {
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].ended())
      keep(runs[i]);  // an earlier sweep may have had other options, or have been killed
    else
      waiting_.push_back(i);
  }
  std::reverse(waiting_.begin(), waiting_.end());
}

bool SweepRunner::run() {
  while (!waiting_.empty() || !children_.empty()) {
    if (stop_signal() != 0) return stop();
    while (!waiting_.empty() && children_.size() < static_cast<size_t>(options_.jobs)) start_next();
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
  const auto diverged =
      std::count_if(runs_.begin(), runs_.end(), [](const auto& run) { return run.state == SweepRun::State::diverged; });
  progress_.finish(fmt::format("{}: {} runs{}, {} failed", options_.name, runs_.size(),
                               diverged == 0 ? "" : fmt::format(", {} diverged", diverged), failures_.size()));
  return true;
}

void SweepRunner::start_next() {
  const size_t index = waiting_.back();
  waiting_.pop_back();
  const auto& run = runs_[index];
  std::vector<std::string> words = {
      "train",    "--out",        run.folder.string(), "--threads", std::to_string(options_.threads),
      "--device", options_.device};
  if (run.state == SweepRun::State::begun) {
    words.push_back("--resume");
  } else {
    const fs::path recipe = options_.out / "recipes" / (run.name + ".json");
    write_file(recipe, to_text(fields_to_json(run.recipe), 2) + "\n");
    words.insert(words.end(), {"--recipe", recipe.string()});
  }
  children_.push_back({start_child(words, log_of(run)), index});
}

void SweepRunner::finish(const Child& child, int status) {
  auto& run = runs_[child.run];
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    run.state = SweepRun::State::finished;
    keep(run);
    return;
  }
  if (stop_signal() != 0) return;  // the signal stopped it too
  if (WIFEXITED(status) && has_diverged(run.folder)) {
    run.state = SweepRun::State::diverged;
    keep(run);
    return progress_.note(fmt::format("{}: {}: {}", options_.name, run.name, last_line(log_of(run))));
  }
  failures_.push_back(WIFSIGNALED(status)
                          ? fmt::format("{}: killed by signal {} ({}), often because memory ran out; its log is {}",
                                        run.name, WTERMSIG(status), ::strsignal(WTERMSIG(status)), log_of(run).string())
                          : fmt::format("{}: {}", run.name, last_line(log_of(run))));
  progress_.note(options_.name + ": " + failures_.back());
}

/// Copies the records of a run that ended, and deletes its checkpoints if the sweep does not keep them.
void SweepRunner::keep(const SweepRun& run) {
  const fs::path copy = options_.records / run.name;
  const auto kept = options_.records.empty() ? run.state : state_of(copy);
  if (run.folder != copy && kept != run.state && kept != SweepRun::State::finished) {
    make_folder(copy);
    // Records come last, because a copy counts as ended only with them.
    for (const char* name : {kRunRecipeName, kRunRecordsName}) write_file(copy / name, read_file(run.folder / name));
  }
  if (!sweep_.keep_checkpoints) fs::remove_all(run.folder / "checkpoints");
}

bool SweepRunner::stop() {
  for (const auto& child : children_) ::kill(child.process, SIGTERM);
  for (const auto& child : children_) {
    int status = 0;
    ::waitpid(child.process, &status, 0);
    finish(child, status);
  }
  progress_.finish(options_.name + ": stopped; runs are saved, and the same command continues them");
  return false;
}

int64_t SweepRunner::total() const {
  int64_t sum = 0;
  for (const auto& run : runs_) sum += training_size(run.recipe);
  return sum;
}

int64_t SweepRunner::done() const {
  int64_t sum = 0;
  for (const auto& run : runs_) sum += done_of(run);
  return sum;
}

/// Updates the progress line, but only every few seconds, because it reads the records of active runs.
void SweepRunner::show() {
  constexpr double kBetween_s = 5;
  if (shown_ && since_shown_.seconds() < kBetween_s) return;
  shown_ = true;
  since_shown_.restart();
  std::string names;
  for (const auto& child : children_) names += (names.empty() ? "" : ", ") + runs_[child.run].name;
  const auto ended = std::count_if(runs_.begin(), runs_.end(), [](const auto& run) { return run.ended(); });
  progress_.update(done(), fmt::format("{} of {} runs | {}", ended, runs_.size(), names));
}

}  // namespace prism
