#include "prism/data/staged_folder.h"

#include <vector>

#include "prism/core/error.h"
#include "prism/data/labelled/dataset.h"
#include "prism/data/loader.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

/// Returns true for marks of shards that prism wrote.
bool is_marks(const fs::path& path) {
  const std::string name = path.filename().string();
  return path.extension() == ".marks" && (name.starts_with("train_") || name.starts_with("valid_"));
}

/// The files that make `folder` a dataset. A tokenizer alone does not, so it is not included.
std::vector<fs::path> dataset_files(const fs::path& folder) {
  std::vector<fs::path> files = find_shards(folder, "train");
  const std::vector<fs::path> valid = find_shards(folder, "valid");
  files.insert(files.end(), valid.begin(), valid.end());
  for (const auto& entry : fs::directory_iterator(folder))
    if (is_marks(entry.path())) files.push_back(entry.path());
  if (is_there(folder / kDatasetInfoName)) files.push_back(folder / kDatasetInfoName);
  if (!is_labelled(folder)) return files;
  for (const char* split : {"train", "valid", "test"})
    if (is_there(labelled_file(folder, split))) files.push_back(labelled_file(folder, split));
  return files;
}

/// Removes a dataset and its tokenizer's settings, because a new tokenizer must not get those of an old one. Without
/// data.json, the settings belong to something else, such as a model.
void remove_dataset(const fs::path& folder) {
  const std::vector<fs::path> files = dataset_files(folder);
  if (is_there(folder / kDatasetInfoName))
    for (const char* name : kSettingsNames) fs::remove(folder / name);
  for (const fs::path& file : files) fs::remove(file);
}

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder)) paths.push_back(entry.path());
  return paths;
}

}  // namespace

void check_tokenizer_there(const fs::path& folder, const Tokenizer& tokenizer, bool force) {
  const fs::path path = folder / kTokenizerName;
  if (force || !fs::exists(path)) return;
  PRISM_CHECK(Tokenizer::load(path).fingerprint() == tokenizer.fingerprint(), "tokenize",
              "expected no other tokenizer in {}; found {}; choose another folder, or pass --force to replace it.",
              folder.string(), path.string());
}

void save_tokenizer(const Tokenizer& tokenizer, const fs::path& folder) {
  tokenizer.save(folder / kTokenizerName);
  if (tokenizer.settings() != default_settings(tokenizer)) write_settings(folder, tokenizer);
}

StagedFolder::StagedFolder(const fs::path& folder, bool force)
    : folder_(folder), staging_(folder / ".partial"), made_folder_(folder) {
  lock_.emplace(folder_, "tokenize");
  const bool used = !dataset_files(folder_).empty() || fs::exists(folder_ / kUnfinishedName);
  PRISM_CHECK(!used || force, "tokenize",
              "expected a folder without a dataset; found one in {}; choose another folder, or pass --force to replace "
              "it.",
              folder_.string());
  std::error_code code;
  fs::remove_all(staging_, code);  // left over from a killed run
  make_folder(staging_);
}

StagedFolder::~StagedFolder() {
  std::error_code ignored;
  fs::remove_all(staging_, ignored);
}

void StagedFolder::publish() {
  const fs::path unfinished = folder_ / kUnfinishedName;
  try {
    if (fs::exists(unfinished)) {  // emptied, not removed: a rename may replace an empty folder in one step
      remove_dataset(folder_);
      for (const fs::path& path : entries(unfinished)) fs::remove_all(path);
    }
    fs::rename(staging_, unfinished);
    remove_dataset(folder_);
    // data.json first: if the process is killed before the rest, the settings are known to be the dataset's.
    const fs::path info = unfinished / kDatasetInfoName;
    if (is_there(info)) fs::rename(info, folder_ / kDatasetInfoName);
    for (const fs::path& file : entries(unfinished)) fs::rename(file, folder_ / file.filename());
    sync_folder(folder_);
    fs::remove(unfinished);
    sync_folder(folder_);
  } catch (const fs::filesystem_error& error) {
    throw FailedError("tokenize", fmt::format("expected to move the finished files to {}; found: {}; fix that and run "
                                              "again with --force.",
                                              folder_.string(), error.code().message()));
  }
}

}  // namespace prism
