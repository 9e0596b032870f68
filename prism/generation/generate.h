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

#include "prism/attention/kv_cache.h"
#include "prism/generation/sampler.h"
#include "prism/models/decoder.h"
#include "prism/tokenizer/tokenizer.h"

namespace prism {

/// Default number of new tokens, if the context has room.
constexpr int64_t kDefaultNewTokens = 128;

struct GenerateOptions {
  int64_t max_new_tokens = 0;
  bool truncate_prompt = false, slide = false;
  bool ignore_end_of_text = false;
  bool stop_on_signals = true;
  std::string bos = "auto";
  std::vector<std::string> stop;
  SamplerOptions sampler;
  template <class Visitor>
  void visit(Visitor& v) {
    v("max_new_tokens", max_new_tokens,
      "stop after this many new tokens; 0: 128, or fewer if the context has no room for them and slide is off; in a "
      "chat, as many as the context has room for");
    v("truncate_prompt", truncate_prompt,
      "if prompt and new tokens exceed the context, read only the end of the prompt");
    v("slide", slide,
      "when the context is full, recompute its last half and continue; models with learned positions always drop their "
      "oldest token instead and recompute the whole context for each new token");
    v("ignore_end_of_text", ignore_end_of_text, "continue past the tokens that end a text");
    v("stop_on_signals", stop_on_signals, "stop early on SIGINT or SIGTERM");
    v("bos", bos,
      "whether to put the beginning-of-sequence token (BOS) before the prompt: auto (as the tokenizer's files say), "
      "on, off");
    v("stop", stop, R"(stop before this text; \n, \t, \r, \\ and \xHH as in C; may be repeated)");
    v("sampler", sampler, "how the next token is chosen");
  }
};

enum class FinishReason {
  length,       ///< max_new_tokens were made
  end_of_text,  ///< the model ended the document
  stop_string,
  interrupted,  ///< SIGINT or SIGTERM (core/stop.h)
};
/// "length", "end_of_text", "stop_string", "interrupted".
std::string finish_name(FinishReason reason);

struct Generation {
  std::vector<int32_t> prompt_ids;
  std::vector<int32_t> ids;  ///< new tokens, without the one that ended the text
  std::string text;          ///< text of `ids`: valid UTF-8, cut before the stop string
  FinishReason finish = FinishReason::length;
  double prompt_seconds = 0;  ///< time of the pass over the prompt
  double decode_seconds = 0;  ///< time of everything after it
  int64_t decode_steps = 0;   ///< passes after the prompt's, which gives the first new token
  int64_t slides = 0;         ///< how often a full context was recomputed
  int64_t unread = 0;         ///< tokens cut from the start of a prompt that is too long
  int64_t reused = 0;         ///< tokens of the prompt that the session's cache held already

  /// Tokens of the prompt that were computed.
  int64_t prompt_tokens_read() const { return static_cast<int64_t>(prompt_ids.size()) - unread - reused; }
  double prompt_tokens_per_second() const { return static_cast<double>(prompt_tokens_read()) / prompt_seconds; }
  /// 0 if there was no step.
  double decode_tokens_per_second() const {
    return decode_steps == 0 ? 0.0 : static_cast<double>(decode_steps) / decode_seconds;
  }
};

/// The tokens of a prompt. @param bos  as GenerateOptions::bos. @throws InputError as generate() does for the prompt.
std::vector<int32_t> encode_prompt(const Tokenizer& tokenizer, std::string_view prompt, const std::string& bos);

/// How many tokens the model's context has room for after `prompt`; std::nullopt if the context always slides.
/// @throws InputError as generate() does for the prompt.
std::optional<int64_t> room_behind(const ModelConfig& config, const Tokenizer& tokenizer, std::string_view prompt);

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
/// @param prefill  how attention over the prompt is computed, and in what chunks; null: dense, at once.
/// @throws InputError for a prompt that is not UTF-8, a prompt that fills a context that does not slide, more new
///         tokens than that context has room for, a selector or chunks with head budgets, an empty prompt if the
///         tokenizer has no opening token, and options out of range; FailedError for logits that are not
///         finite.
Generation generate(Decoder decoder, const Tokenizer& tokenizer, std::string_view prompt,
                    const GenerateOptions& options, const std::function<void(std::string_view)>& on_text = {},
                    Prefill* prefill = nullptr);

/// Generates several times, and computes only what a prompt has beyond the tokens that are cached: those of the last
/// prompt and its continuation. With head budgets or a selector for the prompt, everything is computed each time.
class Session {
 public:
  /// @param tokenizer  must outlive the session.
  /// @param capacity   positions for which the cache has room from the first call on. When more are needed, the cache
  ///                   doubles at least.
  Session(Decoder decoder, const Tokenizer& tokenizer, int64_t capacity = 0);

  /// As prism::generate(), for a prompt that is tokenized already. @throws InputError also if it has no token.
  Generation generate(std::vector<int32_t> prompt_ids, const GenerateOptions& options,
                      const std::function<void(std::string_view)>& on_text = {}, Prefill* prefill = nullptr);

 private:
  /// Prepares the cache for `capacity` positions of `ids`. @return  how many of them it holds.
  int64_t prepare_cache(std::span<const int32_t> ids, int64_t capacity, const Prefill* prefill);
  void make_room(int64_t capacity);
  /// Computes what the cache lacks of a result's prompt. @return  logits [V] of the first new token.
  torch::Tensor read_prompt(Generation& result, int64_t capacity, Prefill* prefill);
  /// Computes the last token of `seen`. @param kept  tokens recomputed if the context is full.
  /// @return  logits [V] of the next token.
  torch::Tensor read_token(std::span<const int32_t> seen, int64_t kept, Generation& result);

  Decoder decoder_;
  const Tokenizer& tokenizer_;
  std::unique_ptr<KvCache> cache_;
  int64_t capacity_;             ///< of the first cache, at least
  std::vector<int32_t> cached_;  ///< the tokens of the cache's positions
};

}  // namespace prism
