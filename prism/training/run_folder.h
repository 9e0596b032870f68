// The folder of a run: its lock and its checkpoints.
//
//   RunFolder folder("runs/novels");
//   folder.check_unused(Start::fresh);        // before any data is read
//   folder.claim(Start::fresh);               // after all other checks
//   folder.checkpoints().save(CheckpointKind::step, 120, write);
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "prism/checkpoint/run_state.h"
#include "prism/core/files.h"
#include "prism/training/recipe.h"

namespace prism {

/// fresh: begin in a new folder; restart: delete an unfinished run and begin again; resume: continue a run.
enum class Start { fresh, restart, resume };

/// Returns true if nothing is left to do after the state: all steps are done, and the validation after the last one
/// too.
bool is_done(const Recipe& recipe, const RunState& state);

class RunFolder {
 public:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)), checkpoints_(path_) {}

  /// Checks that a run may begin here. @throws InputError for an empty name and for a folder that is not empty. With
  /// `restart`, a folder with an unfinished run is accepted; a finished run and foreign files are not.
  void check_unused(Start start) const;
  /// @param field  of the recipe that names `used`.
  /// @throws InputError if `used` lies inside this folder, where a restart would delete it. An empty path passes.
  void check_is_apart(const char* field, const std::filesystem::path& used) const;
  /// Makes the folder of a new run, locks it, and deletes the temporary files of a killed process. With `restart`, it
  /// deletes the previous run too. The destructor removes the folder if it made it and it is still empty.
  /// @throws InputError as check_unused(), FailedError if another process trains there.
  void claim(Start start);

  const std::filesystem::path& path() const { return path_; }
  CheckpointStore& checkpoints() { return checkpoints_; }
  const CheckpointStore& checkpoints() const { return checkpoints_; }

  /// For messages: how to proceed if the last checkpoint cannot be used.
  std::string way_round_last() const;
  /// For messages: the last checkpoint before `step` that is known to be good, because a finite loss followed it.
  std::string way_back(int64_t step) const;

 private:
  std::filesystem::path path_;
  CheckpointStore checkpoints_;
  std::optional<MadeFolder> made_;  ///< a new folder is removed again if the run does not begin
  std::optional<FolderLock> lock_;
};

}  // namespace prism
