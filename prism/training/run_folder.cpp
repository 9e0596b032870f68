#include "prism/training/run_folder.h"

#include "prism/core/error.h"
#include "prism/training/recipe.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

}  // namespace

void RunFolder::check_unused() const {
  PRISM_CHECK(!path_.empty(), "train", "expected a folder for the run; found an empty name; name one by --out.");
  std::error_code code;
  if (!fs::is_directory(path_, code)) return;  // make_folder() says what is wrong with anything else
  PRISM_CHECK(!fs::exists(path_ / kRunRecipeName), "train",
              "expected an unused folder; found a run in {}; go on with it by --resume, or choose another --out.",
              path_.string());
  for (const auto& entry : fs::directory_iterator(path_)) {
    const bool ours = entry.path().filename() == ".lock" || is_temporary_of(entry.path(), path_ / kRunRecipeName);
    PRISM_CHECK(ours, "train", "expected an empty folder; found {} in {}; choose another --out.",
                entry.path().filename().string(), path_.string());
  }
}

void RunFolder::claim(Start start) {
  if (start == Start::fresh) make_folder(path_);
  lock_.emplace(path_, "train");
  if (start == Start::fresh) check_unused();  // again: another process may have been faster
  checkpoints_.sweep();
  remove_temporaries(path_ / kRunRecipeName);
}

std::string RunFolder::way_round_last() const {
  return checkpoints_.steps(CheckpointKind::step).size() > 1 ? "delete that folder to go on from the one before"
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
