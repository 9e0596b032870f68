// The folder of a run: who may write there, and its checkpoints.
//
//   RunFolder folder("runs/novels");
//   folder.check_unused();                    // before anything is read
//   folder.claim(Start::fresh);               // when nothing can be refused any more
//   folder.checkpoints().save(CheckpointKind::step, 120, write);
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "prism/checkpoint/run_state.h"
#include "prism/core/files.h"

namespace prism {

/// fresh: a new folder; restart: a folder whose run did not end, which is deleted; resume: that run goes on.
enum class Start { fresh, restart, resume };

class RunFolder {
 public:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)), checkpoints_(path_) {}

  /// That a run may begin here. @throws InputError for a folder without a name, for one that holds anything, and for a
  /// restart: for a run that ended, and files of no run.
  void check_unused(Start start) const;
  /// @throws InputError for a file or folder inside this one, which a restart would delete. An empty name is none.
  void check_is_apart(const std::filesystem::path& used) const;
  /// Makes the folder of a new run, locks it, and clears away what a killed process or, for a restart, the run before
  /// left. @throws InputError as check_unused(), FailedError if another process trains there.
  void claim(Start start);

  const std::filesystem::path& path() const { return path_; }
  CheckpointStore& checkpoints() { return checkpoints_; }
  const CheckpointStore& checkpoints() const { return checkpoints_; }

  /// For messages: what to do about a last checkpoint that cannot be used.
  std::string way_round_last() const;
  /// For messages: which checkpoint before `step` is known to be good, because a finite loss followed it.
  std::string way_back(int64_t step) const;

 private:
  std::filesystem::path path_;
  CheckpointStore checkpoints_;
  std::optional<FolderLock> lock_;
};

}  // namespace prism
