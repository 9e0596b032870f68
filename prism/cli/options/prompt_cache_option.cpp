#include "prism/cli/options/prompt_cache_option.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "prism/checkpoint/prompt_cache.h"
#include "prism/core/console.h"
#include "prism/core/error.h"
#include "prism/core/files.h"

namespace prism {

CLI::Option* add_prompt_cache_option(CLI::App& app, std::string& file) {
  return app
      .add_option(
          "--prompt-cache", file,
          "file for the keys and values of the prompt. If it exists, tokens at which both prompts begin alike are not "
          "computed again; it must have been written by the same model and options. A selector reads the rest as "
          "another part of the prompt. It is written if there is none, or if this prompt continues that of the file")
      ->type_name("FILE");
}

PromptCacheOption::PromptCacheOption(std::string file, const ModelFolder& model, const EngineOptions& engine)
    : file_(std::move(file)), model_(model) {
  if (file_.empty()) return;
  PRISM_CHECK(layers_with_budgets(model.decoder->config()) == 0, "generate",
              "expected a model without head budgets for --prompt-cache; found one that decides by the whole prompt; "
              "leave out the option.");
  const auto folder = std::filesystem::path(file_).parent_path();
  PRISM_CHECK(folder.empty() || std::filesystem::is_directory(folder), "prompt_cache",
              "{}: expected a folder {} for the file; found none; create it, or name another file.", file_,
              folder.string());
  const AtomicFile probe(file_);  // a file that cannot be written is reported before anything is computed
  type_ = cache_type_of(*model.decoder, engine);
  fingerprint_ = prompt_fingerprint(*model.decoder, *model.tokenizer,
                                    engine.prefill == nullptr ? PrefillOptions() : engine.prefill->options(), type_);
}

void PromptCacheOption::restore(Session& session) {
  if (file_.empty() || !is_there(file_)) return;
  auto prompt = read_prompt_cache(file_, model_.decoder->config(), type_, fingerprint_);
  held_ = prompt.tokens;
  session.restore(std::move(prompt));
}

void PromptCacheOption::save(const Session& session, size_t length) const {
  if (file_.empty() || session.cached().empty()) return;
  const auto tokens = session.cached().first(std::min(length, session.cached().size()));
  const auto common = std::min(tokens.size(), held_.size());
  if (!std::equal(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(common), tokens.begin())) {
    tell("note: {} holds another prompt and stays as it is; delete it to keep this one\n", file_);
  } else if (tokens.size() > held_.size()) {
    write_prompt_cache(file_, session.copy(std::ssize(tokens)), fingerprint_);
  }
}

}  // namespace prism
