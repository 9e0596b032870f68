// Writes a dataset to a staging folder, and replaces the folder's old dataset only when everything new is complete.
//
//   StagedFolder folder("data/novels", /*force=*/false);
//   write_file(folder.staging() / "data.json", ...);
//   folder.publish();                                // without it, the destructor leaves the folder unchanged
#pragma once

#include <filesystem>
#include <optional>

#include "prism/core/files.h"
#include "prism/tokenizer/tokenizer.h"

namespace prism {

/// Refuses to overwrite another tokenizer that is already in the folder. @throws InputError for one, unless `force`.
void check_tokenizer_there(const std::filesystem::path& folder, const Tokenizer& tokenizer, bool force);

/// Writes tokenizer.json and, unless they are default_settings(), the files with its settings.
void save_tokenizer(const Tokenizer& tokenizer, const std::filesystem::path& folder);

/// New files are written to `.partial` until publish(), which renames that folder to `.unfinished` (loader.h), removes
/// the old dataset (with its tokenizer's settings), moves the new files out and removes `.unfinished`. If the process
/// is killed at any point, the folder contains the old dataset, the new one, or one that TokenDataset rejects.
class StagedFolder {
 public:
  /// @param force  lets publish() replace an existing dataset in `folder`.
  /// @throws InputError if there is a dataset and `force` is false; FailedError if the folder cannot be written or
  ///         another process works in it.
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
  std::optional<FolderLock> lock_;
};

}  // namespace prism
