// prism generate: continues a prompt.
#include "prism/generation/generate.h"

#include <fmt/format.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "prism/checkpoint/model_folder.h"
#include "prism/cli/command.h"
#include "prism/cli/generation/generation_output.h"
#include "prism/cli/generation/prompts.h"
#include "prism/cli/options/chat_flags.h"
#include "prism/cli/options/compute_options.h"
#include "prism/cli/options/generation_options.h"
#include "prism/cli/options/prefill_options.h"
#include "prism/cli/options/prompt_cache_option.h"
#include "prism/core/console.h"
#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/core/stop.h"
#include "prism/kernels/compute_type.h"

namespace prism {
namespace {

constexpr const char* kGenerateExamples = R"(
The continuation goes to standard output while it is generated; speeds go to standard error. The same command prints the
same text again; --seed chooses another. Prompt and new tokens together must fit the model's context. With --slide, the
model continues beyond it: whenever the context is full, it recomputes the last half. --truncate-prompt reads only the
end of a prompt that is too long. Models with learned positions always truncate a long prompt; when their context is
full, they drop the oldest token and recompute the whole context for each new token.

  prism generate runs/novels 'It was a dark and'
  prism generate runs/novels --temperature 0 --max-new-tokens 50 'It was a dark and'      # always the likeliest token
  prism generate runs/novels --prompt-file letter.txt --stop '\n\n' --echo
  echo 'Dear' | prism generate runs/novels - --json
  prism generate runs/long --prompt-file book.txt --prefill spectral --prefill-chunk 1024

  prism generate model.gguf --chat 'Who wrote Emma?'
  prism generate model.gguf --prompt-file book.txt --prompt-cache book.cache      # faster the second time
  prism generate model.gguf --prompts questions.jsonl --chat --max-new-tokens 64 > answers.jsonl

Without a prompt, the model starts a new document. A prompt is read as the middle of a document, unless the model's
tokenizer puts an opening token (BOS, Llama's <s>) before it. --bos on adds the token; you may also spell it:
'<|endoftext|>It was'. One newline at the end of a file or of standard input is removed.
)";

struct GenerateWords {
  std::string model, prompt, prompt_file, prompts, prompt_cache;
  int64_t parallel = EngineOptions().sequences;
  PrefillFlags prefill;
  ComputeOptions compute;
  ChatFlags chat_flags;
  std::string cache_type = "auto";
  bool chat = false, no_stream = false, echo = false, json = false;
};

void add_options(CLI::App& app, GenerateWords& words, GenerateOptions& options) {
  app.add_option("MODEL", words.model, kModelHelp)->required();
  auto* prompt = app.add_option("PROMPT", words.prompt, "text to continue; - reads standard input");
  app.add_option("--prompt-file", words.prompt_file, "file that holds the prompt")->type_name("FILE")->excludes(prompt);
  auto* prompts =
      app.add_option("--prompts", words.prompts,
                     "JSONL file of many prompts to continue together; - reads standard input. Each line is "
                     "an object with prompt and optionally id, max_new_tokens, temperature, top_k, top_p, "
                     "seed, stop; prints an object for each, in this order");
  prompts->type_name("FILE")->excludes(prompt)->excludes("--prompt-file");
  app.add_option("--parallel", words.parallel, "most prompts of --prompts that are continued at once")
      ->check(CLI::Range(int64_t{1}, int64_t{4096}))
      ->capture_default_str()
      ->needs(prompts);
  auto* chat = app.add_flag("--chat", words.chat,
                            "take the prompt as a message of the user, put it into the model's chat template, and "
                            "print the answer");
  add_chat_flags(app, words.chat_flags, chat);
  add_generation_options(app, options);
  add_prefill_flags(app, words.prefill);
  add_prompt_cache_option(app, words.prompt_cache)->excludes(prompts);
  app.add_flag("--echo", words.echo, "print the prompt before its continuation")->excludes(prompts);
  app.add_flag("--no-stream", words.no_stream, "print the text only when it is complete")->excludes(prompts);
  app.add_flag("--json", words.json, "print one JSON object instead: text, ids, why it ended, speeds")
      ->excludes(prompts);
  add_cache_type_option(app, words.cache_type);
  add_weights_option(app, words.compute);
  add_compute_options(app, words.compute);
}

std::string read_prompt(const GenerateWords& words) {
  std::string prompt;
  if (!words.prompt_file.empty()) {
    prompt = read_file(words.prompt_file);
  } else if (words.prompt == "-") {
    prompt = read_standard_input();
  } else {
    return words.prompt;
  }
  if (prompt.ends_with('\n')) prompt.pop_back();
  return prompt;
}

/// Returns true if the output reports what the selector kept.
bool shows_prefill(const GenerateWords& words) {
  return words.json || words.prefill.options.selector != "dense";
}

void print_json(const GenerateWords& words, const GenerateOptions& options, const std::string& prompt,
                const Generation& result, const PrefillMeter& meter, const DecoderImpl& decoder) {
  const auto type = decoder.compute_type();
  const auto entries = decoder.weights();
  const bool is_frozen =
      std::ranges::any_of(entries, [](const WeightEntry& each) { return each.weight.packed() != nullptr; });
  const std::string weights = is_frozen ? words.compute.weights : "float32";
  Json json = {{"model", words.model}};
  json.update(generation_to_json(prompt, result));
  json.update({{"prompt_tokens_per_second", result.prompt_tokens_per_second()},
               {"decode_tokens_per_second", result.decode_tokens_per_second()},
               {"prefill", prefill_to_json(words.prefill.options, meter.layers())},
               {"sampler", fields_to_json(options.sampler)},
               {"dtype", compute_type_name(type)},
               {"weights", weights},
               {"cache_type", words.cache_type == "auto" ? compute_type_name(type) : words.cache_type},
               {"ids", result.ids}});
  print_now(to_text(json) + "\n");
}

/// Continues a prompt or answers a message. @param print  called with the result before notes are printed.
/// @return  why it ended.
FinishReason continue_one(ModelFolder& model, const GenerateWords& words, const std::string& prompt,
                          const GenerateOptions& options, const std::function<void(std::string_view)>& show,
                          const std::function<void(const Generation&)>& print, Prefill& prefill) {
  const EngineOptions engine{.prefill = &prefill, .cache_type = find_cache_type(words.cache_type)};
  PromptCacheOption file(words.prompt_cache, model, engine);
  const auto with = [&](Session& session, const auto& generate) {
    file.restore(session);
    const Generation result = generate();
    print(result);
    if (result.unread == 0 && result.slides == 0) {
      file.save(session, result.prompt_ids.size());
    } else if (!words.prompt_cache.empty()) {
      tell("note: {} is not written, because the prompt was not kept whole\n", words.prompt_cache);
    }
    return result.finish;
  };
  if (words.chat) {
    Chat chat = open_chat(words.chat_flags, model, words.model, engine);
    check_memory(model.decoder, *model.tokenizer, chat.prompt_ids(prompt, options.bos), options, engine);
    return with(chat.session(), [&] { return chat.answer(prompt, options, show); });
  }
  const auto ids = encode_prompt(*model.tokenizer, prompt, options.bos);
  check_memory(model.decoder, *model.tokenizer, ids, options, engine);
  Session session(model.decoder, *model.tokenizer, engine);
  return with(session, [&] { return session.generate(ids, options, show); });
}

/// --prompts. @return  the exit status.
int continue_all(const GenerateWords& words, const GenerateOptions& options) {
  const auto lines = read_prompt_lines(words.prompts, options);
  ModelFolder model = load_model_with_tokenizer(words.model, words.compute, "generate");
  catch_stop_signals();
  Prefill prefill(words.prefill.options, costs_on_this_machine(cost_shapes(words.prefill.options, model.decoder)));
  std::optional<Chat> chat;
  const EngineOptions engine{
      .sequences = words.parallel, .prefill = &prefill, .cache_type = find_cache_type(words.cache_type)};
  if (words.chat) chat.emplace(open_chat(words.chat_flags, model, words.model, engine));
  const auto encode = [&](const std::string& prompt) {
    PRISM_CHECK(!chat || !prompt.empty(), "generate",
                "expected a message with --chat; found an empty prompt; write one, or leave out the line.");
    return chat ? chat->prompt_ids(prompt, options.bos) : encode_prompt(*model.tokenizer, prompt, options.bos);
  };
  const int status = generate_prompts(model.decoder, *model.tokenizer, lines, engine, encode);
  say_notes(prefill.notes());
  return status;
}

}  // namespace

int run_generate(const Arguments& arguments) {
  CLI::App app(std::string("Continue a prompt.\n") + kGenerateExamples, "prism generate");
  GenerateWords words;
  GenerateOptions options;
  add_options(app, words, options);
  if (!parse(app, arguments)) return 0;
  start_compute(words.compute.threads, words.compute.device);
  complete_generation(options);
  complete_prefill(words.prefill);

  if (!words.prompts.empty()) {
    refuse_recall(words.prefill, "generate");
    return continue_all(words, options);
  }
  const std::string prompt = read_prompt(words);
  PRISM_CHECK(!words.chat || !prompt.empty(), "generate",
              "expected a message with --chat; found none; give PROMPT or --prompt-file.");
  ModelFolder model = load_model_with_tokenizer(words.model, words.compute, "generate");
  catch_stop_signals();
  // The prompt is echoed with the first text, because it has been checked by then.
  std::string echo = words.echo ? prompt : "";
  const bool stream = !words.json && !words.no_stream;
  const auto show = [&](std::string_view text) {
    if (stream) print_now(std::exchange(echo, "") + std::string(text));
  };
  const auto costs = costs_on_this_machine(cost_shapes(words.prefill.options, model.decoder));
  PrefillMeter meter(words.prefill.meter);
  Prefill prefill(words.prefill.options, costs, shows_prefill(words) ? &meter : nullptr);
  const auto print = [&](const Generation& result) {
    if (words.json) return print_json(words, options, prompt, result, meter, *model.decoder);
    print_now(echo + (stream ? "" : result.text) + "\n");
    print_speeds(words.prefill, result, meter);
  };
  const auto finish = continue_one(model, words, prompt, options, show, print, prefill);
  say_notes(prefill.notes());
  return finish == FinishReason::interrupted ? 1 : 0;
}

}  // namespace prism
