#include "prism/training/run_folder.h"

#include "prism/core/error.h"
#include "prism/records/run_event.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

/// Returns true if a file or folder in a run's folder was made by the run.
bool is_of_run(const fs::path& path) {
  const std::string name = path.filename().string();
  std::error_code code;
  if (fs::is_directory(fs::symlink_status(path, code))) return name == "checkpoints";
  return name == kRunRecipeName || name == kRunRecordsName || name == "checkpoints" || name == ".lock" ||
         name.starts_with("events.out.tfevents.") || is_temporary_of(path, path.parent_path() / kRunRecipeName);
}

/// Returns true if the run's records or its last checkpoint say that it is finished. Either may be missing or damaged,
/// as after a failed run.
bool is_known_to_be_finished(const fs::path& run) {
  try {
    if (is_finished(run)) return true;
  } catch (const InputError&) {
    // asks the checkpoint
  }
  try {
    const auto last = last_checkpoint(run);
    if (!last) return false;
    const Recipe recipe = load_run_recipe(run);
    return step_size(recipe) > 0 && is_done(recipe, load_run_state(*last));
  } catch (const InputError&) {
    return false;
  }
}

}  // namespace

bool is_done(const Recipe& recipe, const RunState& state) {
  return state.step == total_steps(recipe) && !state.evaluation_pending;
}

void RunFolder::check_unused(Start start) const {
  PRISM_CHECK(!path_.empty(), "train", "expected a folder for the run; found an empty name; name one with --out.");
  std::error_code code;
  if (!fs::is_directory(path_, code)) return;  // make_folder() says what is wrong with anything else
  const bool is_run = is_there(path_ / kRunRecipeName), restarts = start == Start::restart && is_run;
  PRISM_CHECK(!is_run || !is_known_to_be_finished(path_), "train",
              "expected an unused folder; found a finished run in {}; choose another --out, or delete the folder.",
              path_.string());
  PRISM_CHECK(!is_run || restarts, "train",
              "expected an unused folder; found a run in {}; continue it with --resume, replace it with --restart, or "
              "choose another --out.",
              path_.string());
  for (const auto& entry : fs::directory_iterator(path_)) {
    const bool ours = entry.path().filename() == ".lock" || is_temporary_of(entry.path(), path_ / kRunRecipeName) ||
                      (restarts && is_of_run(entry.path()));
    PRISM_CHECK(ours, "train", "expected an empty folder; found {} in {}; choose another --out.",
                entry.path().filename().string(), path_.string());
  }
  const auto foreign = restarts ? checkpoints_.foreign_entry() : std::nullopt;
  PRISM_CHECK(!foreign, "train",
              "expected only checkpoints in a folder that --restart deletes; found {}; move it away.",
              foreign->string());
}

void RunFolder::check_is_apart(const char* field, const fs::path& used) const {
  if (used.empty()) return;
  std::error_code unreachable;
  const fs::path inside = fs::weakly_canonical(used, unreachable).lexically_relative(fs::weakly_canonical(path_));
  PRISM_CHECK(inside.empty() || inside.begin()->string() == "..", "train",
              "expected {} outside {}, whose files --restart deletes; found {}; copy it, or choose another --out.",
              field, path_.string(), used.string());
}

void RunFolder::claim(Start start) {
  if (start != Start::resume) made_.emplace(path_);
  lock_.emplace(path_, "train");
  if (start != Start::resume) check_unused(start);  // again, because another process may have been faster
  if (start == Start::restart) {
    // The recipe is deleted last, so that an interrupted restart leaves a folder that can be restarted again.
    for (const auto& entry : fs::directory_iterator(path_))
      if (entry.path().filename() != kRunRecipeName && entry.path().filename() != ".lock") fs::remove_all(entry.path());
    fs::remove(path_ / kRunRecipeName);
  }
  checkpoints_.sweep();
  remove_temporaries(path_ / kRunRecipeName);
}

std::string RunFolder::way_round_last() const {
  return checkpoints_.steps(CheckpointKind::step).size() > 1 ? "delete that folder to resume from the one before"
                                                             : "it is the only one, so start a new run";
}

std::string RunFolder::way_back(int64_t step) const {
  auto steps = checkpoints_.steps(CheckpointKind::step);
  std::string newest;
  if (!steps.empty() && steps.back() >= step) {
    newest = checkpoints_.path(CheckpointKind::step, steps.back()).string();
    steps.pop_back();
  }
  const std::string good =
      steps.empty() ? "there is no checkpoint known to be good"
                    : "the last good checkpoint is " + checkpoints_.path(CheckpointKind::step, steps.back()).string();
  return newest.empty() ? good : fmt::format("{} (delete {} to resume from before it)", good, newest);
}

}  // namespace prism
