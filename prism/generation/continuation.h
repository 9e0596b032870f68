// A text that is being generated: chooses its tokens, shows its text, and decides when it ends.
//
//   Continuation text(config, tokenizer, prompt_ids, options, on_text);
//   engine.submit(text.request());
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "prism/core/timer.h"
#include "prism/generation/engine.h"
#include "prism/generation/sampler.h"
#include "prism/generation/text_stream.h"
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
      "most new tokens; 0: 128, or fewer if the context has no room for them and slide is off; in a chat, all that the "
      "context has room for");
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
  /// 0 if a signal ended it before the first new token.
  double prompt_tokens_per_second() const {
    return prompt_seconds == 0 ? 0.0 : static_cast<double>(prompt_tokens_read()) / prompt_seconds;
  }
  /// 0 if there was no step.
  double decode_tokens_per_second() const {
    return decode_steps == 0 ? 0.0 : static_cast<double>(decode_steps) / decode_seconds;
  }
};

/// How many of a prompt's last tokens are read, as generate() says. @throws InputError as generate().
int64_t tokens_read(int64_t prompt_tokens, const ModelConfig& config, const GenerateOptions& options);

class Continuation {
 public:
  /// @param tokenizer  must outlive this.
  /// @param on_text    called with each part of the text as it becomes known, if given.
  /// @throws InputError as generate().
  Continuation(const ModelConfig& config, const Tokenizer& tokenizer, std::vector<int32_t> prompt_ids,
               const GenerateOptions& options, std::function<void(std::string_view)> on_text = {});
  Continuation(const Continuation&) = delete;
  Continuation& operator=(const Continuation&) = delete;

  /// What the engine is asked for. It calls this object, which must exist until the sequence has ended.
  EngineRequest request();
  /// Shows the text that was held back. @param counts  what the engine says of the sequence that has ended.
  void finish(const SequenceCounts& counts);
  Generation& result() { return result_; }
  /// The most positions that the text can take in a cache.
  int64_t positions() const { return positions_; }

 private:
  /// Chooses the next token; std::nullopt if the text ends.
  std::optional<int32_t> choose(std::span<const float> logits_V);
  /// Adds the next token. @return  a reason if the text ends with it.
  std::optional<FinishReason> add(int32_t id);
  void show(const std::string& text);

  const Tokenizer& tokenizer_;
  GenerateOptions options_;
  std::function<void(std::string_view)> on_text_;
  int64_t limit_, positions_, slide_;
  size_t choices_;  ///< ids that the tokenizer knows
  Sampler sampler_;
  TextStream stream_;
  bool drops_space_;
  Generation result_;
  Timer timer_;
};

}  // namespace prism
