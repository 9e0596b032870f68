#include "prism/cli/options/generation_options.h"

#include "prism/cli/options/field_options.h"
#include "prism/core/error.h"
#include "prism/data/text_source.h"

namespace prism {

void add_generation_options(CLI::App& app, GenerateOptions& options) {
  add_fields(app, options, {{"ignore_end_of_text", "ignore-eos"}, {"stop_on_signals", ""}});
  app.get_option("--bos")->check(CLI::IsMember({"auto", "on", "off"}));
}

void complete_generation(GenerateOptions& options) {
  for (auto& stop : options.stop) stop = parse_separator(stop);
  check_generation(options);
}

void check_generation(const GenerateOptions& options) {
  const Sampler check_sampler(options.sampler);
  PRISM_CHECK(options.max_new_tokens >= 0, "generate",
              "--max-new-tokens: expected at least 1, or 0 for the default; found {}; raise it.",
              options.max_new_tokens);
}

}  // namespace prism
