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

enum class Start { fresh, resume };

class RunFolder {
 public:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)), checkpoints_(path_) {}

  /// @throws InputError for a folder without a name, and for one that holds anything.
  void check_unused() const;
  /// Makes the folder of a fresh run, locks it, and clears away what a killed process left.
  /// @throws InputError as check_unused(), FailedError if another process trains there.
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
