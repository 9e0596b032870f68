// Continues a text with a decoder: the prompt at once or in chunks, then one token at a time with a KV cache.
//
//   GenerateOptions options;
//   options.sampler.temperature = 0;
//   Generation result = generate(model.decoder, *model.tokenizer, "Call me", options, [](std::string_view text) {
//     std::cout << text << std::flush;
//   });
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "prism/generation/sampler.h"
#include "prism/models/decoder.h"
#include "prism/tokenizer/tokenizer.h"

namespace prism {

/// New tokens when their number is left open and the context has room.
constexpr int64_t kDefaultNewTokens = 128;

struct GenerateOptions {
  int64_t max_new_tokens = 0;
  bool ignore_end_of_text = false;
  bool heed_signals = true;
  std::vector<std::string> stop;
  SamplerOptions sampler;
  template <class Visitor>
  void visit(Visitor& v) {
    v("max_new_tokens", max_new_tokens,
      "stop after so many tokens; 0: 128, or fewer where a context that does not slide ends");
    v("ignore_end_of_text", ignore_end_of_text, "go on behind the end-of-text token");
    v("heed_signals", heed_signals, "stop early at SIGINT or SIGTERM");
    v("stop", stop, R"(stop before this text, in which \n, \t, \r, \\ and \xHH are read as in C; may be repeated)");
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
  std::vector<int32_t> ids;  ///< new ones; without the end-of-text token that ended them
  std::string text;          ///< of `ids`, well-formed UTF-8, cut before the stop string
  FinishReason finish = FinishReason::length;
  double prompt_seconds = 0;  ///< the pass over the prompt
  double decode_seconds = 0;  ///< everything behind it
  int64_t decode_steps = 0;   ///< passes of one token; the first new token comes out of the prompt's

  double prompt_tokens_per_second() const { return static_cast<double>(prompt_ids.size()) / prompt_seconds; }
  /// 0 when there was no step.
  double decode_tokens_per_second() const {
    return decode_steps == 0 ? 0.0 : static_cast<double>(decode_steps) / decode_seconds;
  }
};

/// How many tokens the model's context has room for behind `prompt`; absent where the context slides.
/// @throws InputError as generate() for the prompt.
std::optional<int64_t> room_behind(const ModelConfig& config, const Tokenizer& tokenizer, std::string_view prompt);

/// Continues `prompt`.
///
/// The prompt is taken as it is: special tokens that it spells are parsed and nothing is put in front of it. An empty
/// one starts a document, which is what the end-of-text token in front of a document means to models trained here.
/// Where a model has more rows than its tokenizer has ids, the rows beyond are never chosen. Tokens are computed in the
/// decoder's compute dtype.
///
/// The context of a model with learned positions slides: once it is full, the last `context` tokens are computed anew
/// at positions 0 to context - 1 for every new one, and of a longer prompt only they count. Other models end where
/// their context does.
///
/// @param on_text  if given, receives the text in parts as it becomes known; the parts are result.text.
/// @param prefill  how attention over the prompt is computed, and in what chunks; null: dense, at once.
/// @throws InputError for a prompt that is not UTF-8 or fills a context that does not slide, more new tokens than that
///         has room for, an empty prompt where the tokenizer has no end-of-text token, options out of range;
///         FailedError for logits that are not finite.
Generation generate(Decoder decoder, const Tokenizer& tokenizer, std::string_view prompt,
                    const GenerateOptions& options, const std::function<void(std::string_view)>& on_text = {},
                    Prefill* prefill = nullptr);

}  // namespace prism
