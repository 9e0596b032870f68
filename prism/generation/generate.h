// Generates text with a decoder: reads the prompt at once or in chunks, then one token at a time with a KV cache.
//
//   GenerateOptions options;
//   options.sampler.temperature = 0;
//   Generation result = generate(model.decoder, *model.tokenizer, "Call me", options, [](std::string_view text) {
//     std::cout << text << std::flush;
//   });
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "prism/generation/continuation.h"

namespace prism {

/// The tokens of a prompt. @param bos  as GenerateOptions::bos. @throws InputError as generate() does for the prompt.
std::vector<int32_t> encode_prompt(const Tokenizer& tokenizer, std::string_view prompt, const std::string& bos);

/// How many tokens the model's context has room for after `prompt`; std::nullopt if the context always slides.
/// @throws InputError as generate() does for the prompt.
std::optional<int64_t> room_after(const ModelConfig& config, const Tokenizer& tokenizer, std::string_view prompt);

/// Checks that the free memory holds the keys and values of a prompt and all of its new tokens, if they are on the CPU.
/// @throws InputError if it does not, and as generate().
void check_memory(const Decoder& decoder, const Tokenizer& tokenizer, const std::vector<int32_t>& prompt_ids,
                  const GenerateOptions& options, const EngineOptions& engine = {});

/// Continues `prompt`.
///
/// Special tokens spelled in the prompt are parsed. Before it comes the opening token (BOS), if the tokenizer's
/// files say so, unless it is spelled there (GenerateOptions::bos). An empty prompt becomes that token, which starts a
/// document in the training data. Each of the tokenizer's ends ends the text (SpecialIds). If the model has more
/// vocabulary rows than the tokenizer has ids, the extra rows are never chosen. Tokens are computed in the decoder's
/// compute dtype.
///
/// With `slide`, a full context slides: its last half is recomputed at positions from 0 on, and decoding continues
/// after it. So one pass over half a context serves half a context of new tokens. A model with learned positions always
/// slides, by one token at a time as its sources do: the last `context` tokens are recomputed for every new token.
/// Head budgets then decide again, from the recomputed tokens.
/// Of a prompt that is too long, only the last tokens are read, with truncate_prompt or learned positions: `context` of
/// them if the context slides; otherwise as many as leave room for max_new_tokens, or by default for 128 new tokens or
/// half the context, whichever is less.
///
/// @param on_text  if given, called with each part of the text as it becomes known; the parts add up to result.text.
/// @param engine   how the prompt is read; `sequences` is not used.
/// @throws InputError for a prompt that is not UTF-8, a prompt that fills a context that does not slide, more new
///         tokens than that context has room for, a selector or chunks with head budgets, an empty prompt if the
///         tokenizer has no opening token, options out of range, and as check_memory(); FailedError for logits that
///         are not finite.
Generation generate(Decoder decoder, const Tokenizer& tokenizer, std::string_view prompt,
                    const GenerateOptions& options, const std::function<void(std::string_view)>& on_text = {},
                    const EngineOptions& engine = {});

/// A prompt to continue among others.
struct Prompt {
  std::vector<int32_t> ids;
  GenerateOptions options;
};

/// Continues many prompts together (engine.h). Each text is what generate() gives for it alone; with frozen weights its
/// logits have the same bits. The time to a prompt's first token counts from the beginning.
///
/// @param on_end  called with the number of a prompt and its result, in the order in which they end.
/// @return  false if a signal stopped it (core/stop.h) before all had ended.
/// @throws InputError as generate(), and if the keys and values that are computed together exceed the memory, both
///         before the first token.
bool generate_all(Decoder decoder, const Tokenizer& tokenizer, const std::vector<Prompt>& prompts,
                  const EngineOptions& options, const std::function<void(size_t, Generation&)>& on_end);

/// Generates several times, and computes only what a prompt has beyond the tokens that are cached: those of the last
/// prompt and its continuation. With head budgets or a selector for the prompt, everything is computed each time.
class Session {
 public:
  /// @param tokenizer  must outlive the session. @param engine  `sequences` is not used.
  Session(Decoder decoder, const Tokenizer& tokenizer, EngineOptions engine = {});

  /// As prism::generate(), for a prompt that is tokenized already, but for check_memory(). @throws InputError also if
  /// it has no token.
  Generation generate(std::vector<int32_t> prompt_ids, const GenerateOptions& options,
                      const std::function<void(std::string_view)>& on_text = {});

  /// Begins with what another session of the same model has read: the next prompt reuses what it has in common.
  void restore(CachedPrompt prompt);
  /// The tokens that are cached; none before the first prompt.
  std::span<const int32_t> cached() const;
  /// The first `length` of them.
  CachedPrompt copy(int64_t length) const;

 private:
  ModelConfig config_;
  const Tokenizer& tokenizer_;
  std::unique_ptr<Engine> engine_;
  std::optional<int64_t> sequence_;  ///< the engine's
  bool is_restored_ = false;         ///< and has not generated yet
};

}  // namespace prism
