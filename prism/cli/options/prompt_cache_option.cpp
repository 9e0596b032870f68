#include "prism/cli/options/prompt_cache_option.h"

#include <algorithm>
#include <utility>

#include "prism/checkpoint/prompt_cache.h"
#include "prism/core/error.h"
#include "prism/core/files.h"

namespace prism {

CLI::Option* add_prompt_cache_option(CLI::App& app, std::string& file) {
  return app
      .add_option(
          "--prompt-cache", file,
          "file that keeps what was computed for the prompt: read if it exists, so that the tokens which a prompt "
          "has in common with it are not computed again; written if it does not exist or the prompt goes on "
          "after it")
      ->type_name("FILE");
}

PromptCacheOption::PromptCacheOption(std::string file, const ModelFolder& model, const EngineOptions& engine)
    : file_(std::move(file)), model_(model) {
  if (file_.empty()) return;
  PRISM_CHECK(layers_with_budgets(model.decoder->config()) == 0, "generate",
              "expected a model without head budgets for --prompt-cache; found one that decides by the whole prompt; "
              "leave out the option.");
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
  if (file_.empty()) return;
  const auto tokens = session.cached().first(std::min(length, session.cached().size()));
  const bool goes_on = tokens.size() > held_.size() && std::equal(held_.begin(), held_.end(), tokens.begin());
  if (goes_on) write_prompt_cache(file_, session.copy(std::ssize(tokens)), fingerprint_);
}

}  // namespace prism
