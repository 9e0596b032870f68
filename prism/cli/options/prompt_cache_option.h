// The option --prompt-cache: a file that keeps a prompt that was read, with its keys and values.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>

#include "prism/checkpoint/model_folder.h"
#include "prism/generation/generate.h"

namespace prism {

/// Adds --prompt-cache. @return  the option.
CLI::Option* add_prompt_cache_option(CLI::App& app, std::string& file);

class PromptCacheOption {
 public:
  /// @param file  empty: no file is read or written.
  /// @throws InputError for a model with head budgets, whose keys depend on the whole prompt, and for a file whose
  ///         folder does not exist.
  PromptCacheOption(std::string file, const ModelFolder& model, const EngineOptions& engine);

  /// Gives the session what the file holds, if there is one. @throws InputError as read_prompt_cache().
  void restore(Session& session);
  /// Writes the first `length` tokens of what the session has read, if there is no file yet, or if they are more than
  /// the file holds and begin with it. A file of another prompt stays as it is, and a note says so.
  void save(const Session& session, size_t length) const;

 private:
  std::string file_;
  const ModelFolder& model_;
  torch::ScalarType type_ = torch::kFloat;  ///< of keys and values
  std::map<std::string, std::string> fingerprint_;
  std::vector<int32_t> held_;  ///< the tokens of the file
};

}  // namespace prism
