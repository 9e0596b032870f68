// prism generate --prompts: continues all prompts of a JSONL file together.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "prism/core/json.h"
#include "prism/generation/generate.h"

namespace prism {

/// A line of the file, with its options filled in.
struct PromptLine {
  std::string prompt;
  Json id;  ///< copied to the result; null: none
  GenerateOptions options;
  std::string place;  ///< file and line, for messages
};

/// Reads {"prompt": TEXT} and optionally "id" and sampling options, which override `options`, from each line. Skips
/// blank lines. @param file  - reads standard input.
/// @throws InputError naming the line that is wrong.
std::vector<PromptLine> read_prompt_lines(const std::string& file, const GenerateOptions& options);

/// Continues all, and prints one JSON object for each, in the order of the file.
/// @param encode  the tokens of a prompt.
/// @return  the exit status: 1 if a signal stopped it.
int generate_prompts(const Decoder& decoder, const Tokenizer& tokenizer, const std::vector<PromptLine>& lines,
                     const EngineOptions& options,
                     const std::function<std::vector<int32_t>(const std::string&)>& encode);

}  // namespace prism
