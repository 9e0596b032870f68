// The folder that prism eval --out writes: the answers to each item, the figures, and what they depend on.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "prism/core/files.h"
#include "prism/core/json.h"
#include "prism/evaluation/tasks/samples.h"
#include "prism/evaluation/tasks/task.h"

namespace prism {

class ResultFolder {
 public:
  /// @param settings  an object; settings that the folder lacks are added.
  /// @throws InputError if it has results of other settings, or files of another layout.
  ResultFolder(std::filesystem::path path, const Json& settings);

  std::filesystem::path samples(const Task& task) const;
  /// Adds figures to those of earlier calls.
  void write(const std::vector<TaskFigures>& figures);
  /// Adds to the seconds that a task has taken, over all calls. They are in a file of their own, because they differ
  /// from one evaluation to the next.
  void add_seconds(const Task& task, double seconds);

 private:
  /// @throws InputError for answers without the settings of an evaluation beside them.
  void check_known(const std::string& name) const;

  std::filesystem::path path_;
  Json settings_, results_, seconds_;
  MadeFolder made_;
  FolderLock lock_;
};

}  // namespace prism
