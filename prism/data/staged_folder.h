// A dataset's folder, filled beside what it holds and changed only when everything new is whole.
//
//   StagedFolder folder("data/novels", /*force=*/false);
//   write_file(folder.staging() / "data.json", ...);
//   folder.publish();                                // destroyed without it, the folder is as it was
#pragma once

#include <filesystem>
#include <optional>

#include "prism/core/files.h"

namespace prism {

/// New files lie in `.partial` until publish(), which renames that to `.unfinished` (loader.h), removes the old
/// dataset, moves the new files out and removes `.unfinished`: killed at any moment, the folder holds the old dataset,
/// or the new one, or one that TokenDataset refuses.
class StagedFolder {
 public:
  /// @param force  an old dataset in `folder` is replaced by publish().
  /// @throws InputError if there is one and `force` is off, FailedError if the folder cannot be written or another
  ///         process works in it.
  StagedFolder(const std::filesystem::path& folder, bool force);
  ~StagedFolder();
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;

  const std::filesystem::path& staging() const { return staging_; }
  /// @throws FailedError with the system's reason.
  void publish();

 private:
  std::filesystem::path folder_, staging_;
  MadeFolder made_folder_;
  bool published_ = false;
  std::optional<FolderLock> lock_;
};

}  // namespace prism
