#include "prism/cli/generation/prompts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include "prism/cli/generation/generation_output.h"
#include "prism/cli/options/generation_options.h"
#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "prism/core/files.h"
#include "prism/core/progress.h"
#include "prism/core/text/counted.h"

namespace prism {
namespace {

/// What a line may hold.
struct LineFields {
  std::string prompt;
  Json id;
  std::optional<int64_t> max_new_tokens, top_k, seed;
  std::optional<double> temperature, top_p;
  std::optional<std::vector<std::string>> stop;
  template <class Visitor>
  void visit(Visitor& v) {
    v("prompt", prompt, "text to continue");
    v("id", id, "copied to the result");
    v("max_new_tokens", max_new_tokens, "as --max-new-tokens");
    v("temperature", temperature, "as --temperature");
    v("top_k", top_k, "as --top-k");
    v("top_p", top_p, "as --top-p");
    v("seed", seed, "as --seed");
    v("stop", stop, "as --stop, without escapes");
  }
};

template <class T>
void override_with(T& value, const std::optional<T>& given) {
  if (given) value = *given;
}

PromptLine read_line(const std::string& text, const std::string& place, const GenerateOptions& options) {
  const Json json = parse_json(text, place);
  const auto check = [&](bool is_right, const std::string& found) {
    PRISM_CHECK(is_right, "generate",
                "{}: expected a JSON object with \"prompt\"; found {}; write {{\"prompt\": \"...\"}}.", place, found);
  };
  check(json.is_object(), json.type_name());
  auto fields = fields_from_json<LineFields>(json, place);  // names a field that is misspelt
  check(json.contains("prompt"), "none in the object");
  PromptLine line{std::move(fields.prompt), std::move(fields.id), options, place};
  override_with(line.options.max_new_tokens, fields.max_new_tokens);
  override_with(line.options.sampler.top_k, fields.top_k);
  override_with(line.options.sampler.seed, fields.seed);
  override_with(line.options.sampler.temperature, fields.temperature);
  override_with(line.options.sampler.top_p, fields.top_p);
  override_with(line.options.stop, fields.stop);
  return line;
}

/// Runs a check of one line, whose sentence then names the line.
template <class Check>
auto at_place(const std::string& place, const Check& check) {
  try {
    return check();
  } catch (const InputError& error) {
    throw InputError("generate", fmt::format("{}: {}", place, error.sentence()));
  }
}

/// Checks the options of a line, whose fields have the names of options with other signs.
void check_options(const PromptLine& line) {
  try {
    check_generation(line.options);
  } catch (const InputError& error) {
    std::string sentence = error.sentence();
    if (sentence.starts_with("--")) {
      sentence.erase(0, 2);
      std::replace(sentence.begin(), sentence.begin() + static_cast<std::ptrdiff_t>(sentence.find(':')), '-', '_');
    }
    throw InputError("generate", fmt::format("{}: {}", line.place, sentence));
  }
}

std::string result_line(const PromptLine& line, const Generation& result) {
  Json json = generation_to_json(line.prompt, result);
  json["ids"] = result.ids;
  if (!line.id.is_null()) json["id"] = line.id;
  return to_text(json) + "\n";
}

}  // namespace

std::vector<PromptLine> read_prompt_lines(const std::string& file, const GenerateOptions& options) {
  std::istringstream stream(file == "-" ? read_standard_input() : read_file(file));
  const std::string name = file == "-" ? "standard input" : file;
  std::vector<PromptLine> lines;
  int64_t number = 0;
  for (std::string text; std::getline(stream, text);) {
    ++number;
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string place = fmt::format("{}, line {}", name, number);
    lines.push_back(read_line(text, place, options));
    check_options(lines.back());
  }
  PRISM_CHECK(!lines.empty(), "generate", "{}: expected a line for each prompt; found none; add some.", name);
  return lines;
}

int generate_prompts(const Decoder& decoder, const Tokenizer& tokenizer, const std::vector<PromptLine>& lines,
                     const EngineOptions& options,
                     const std::function<std::vector<int32_t>(const std::string&)>& encode) {
  std::vector<Prompt> prompts;
  for (const auto& line : lines)
    prompts.push_back(at_place(line.place, [&] {
      Prompt prompt{encode(line.prompt), line.options};
      const Continuation check(decoder->config(), tokenizer, prompt.ids, prompt.options);
      return prompt;
    }));
  std::map<size_t, std::string> waiting;  // results whose turn has not come
  size_t next = 0;
  int64_t tokens = 0, ended = 0, cut = 0;
  Progress progress("generate", std::ssize(lines), " prompts");
  bool is_whole = generate_all(decoder, tokenizer, prompts, options, [&](size_t i, Generation& result) {
    tokens += std::ssize(result.ids);
    waiting[i] = result_line(lines[i], result);
    for (; !waiting.empty() && waiting.begin()->first == next; ++next) {
      print_now(waiting.begin()->second);
      waiting.erase(waiting.begin());
    }
    result.finish == FinishReason::interrupted ? ++cut : ++ended;
    progress.update(ended, counted(tokens, "new token"));
  });
  for (const auto& [i, text] : waiting) print_now(text);  // after a signal
  is_whole = is_whole && cut == 0;
  progress.finish(fmt::format("{} of {}, {}{}", ended, counted(std::ssize(lines), "prompt"),
                              counted(tokens, "new token"), is_whole ? "" : ", interrupted"));
  return is_whole ? 0 : 1;
}

}  // namespace prism
