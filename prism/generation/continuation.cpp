#include "prism/generation/continuation.h"

#include <algorithm>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/stop.h"

namespace prism {
namespace {

/// New tokens for which the cache has room from the start. More than these make it grow.
constexpr int64_t kRoomAhead = 1024;

/// Tokens recomputed when the context is full; 0: the context does not slide. Learned positions have no values beyond
/// the context, so such a context always slides.
int64_t tokens_kept(const ModelConfig& config, bool slide) {
  if (config.learned_positions) return config.context;
  return slide ? std::max<int64_t>(1, config.context / 2) : 0;
}

/// Maximum number of new tokens. @param read  tokens of the prompt that are read.
int64_t new_token_limit(int64_t read, const ModelConfig& config, const GenerateOptions& options) {
  const int64_t wanted = options.max_new_tokens, room = config.context - read;
  PRISM_CHECK(wanted >= 0, "generate",
              "expected max_new_tokens of at least 1, or 0 for the default; found {}; raise it.", wanted);
  if (tokens_kept(config, options.slide) > 0) return wanted > 0 ? wanted : kDefaultNewTokens;
  PRISM_CHECK(wanted <= room, "generate",
              "expected prompt and new tokens within the model's context of {} tokens; found {} + {}; ask for at "
              "most {} new {}, shorten the prompt, or give --slide.",
              config.context, read, wanted, room, room == 1 ? "token" : "tokens");
  return wanted > 0 ? wanted : std::min(room, kDefaultNewTokens);
}

}  // namespace

std::string finish_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::length:
      return "length";
    case FinishReason::end_of_text:
      return "end_of_text";
    case FinishReason::stop_string:
      return "stop_string";
    case FinishReason::interrupted:
      return "interrupted";
  }
  throw InternalError("generate", "unknown reason to finish.");
}

int64_t tokens_read(int64_t prompt_tokens, const ModelConfig& config, const GenerateOptions& options) {
  const bool slides = tokens_kept(config, options.slide) > 0;
  const int64_t most = slides ? config.context : config.context - 1;
  const bool may_cut = config.learned_positions || (options.truncate_prompt && most > 0);
  PRISM_CHECK(
      prompt_tokens <= most || may_cut, "generate",
      "expected a prompt of at most {} tokens in the model's context of {} tokens; found {} tokens; shorten it, "
      "or give {}.",
      most, config.context, prompt_tokens, most == 0 ? "--slide" : "--truncate-prompt");
  if (slides || !may_cut) return std::min(prompt_tokens, most);
  PRISM_CHECK(options.max_new_tokens < config.context, "generate",
              "expected fewer new tokens than the model's context of {} tokens; found {}; ask for at most {}, or give "
              "--slide.",
              config.context, options.max_new_tokens, config.context - 1);
  const bool too_long = prompt_tokens > most;
  const int64_t wanted = options.max_new_tokens > 0 ? options.max_new_tokens
                         : too_long                 ? std::min(kDefaultNewTokens, config.context / 2)
                                                    : 1;
  return std::min(prompt_tokens, std::max<int64_t>(1, config.context - wanted));
}

Continuation::Continuation(const ModelConfig& config, const Tokenizer& tokenizer, std::vector<int32_t> prompt_ids,
                           const GenerateOptions& options, std::function<void(std::string_view)> on_text)
    : tokenizer_(tokenizer),
      options_(options),
      on_text_(std::move(on_text)),
      slide_(tokens_kept(config, options.slide)),
      choices_(static_cast<size_t>(std::min(config.vocab_size, tokenizer.vocab_size()))),
      sampler_(options.sampler),
      stream_(options.stop),
      // Text that follows nothing but special tokens is the beginning of a text.
      drops_space_(tokenizer.strips_first_space() && std::all_of(prompt_ids.begin(), prompt_ids.end(), [&](int32_t id) {
                     return tokenizer.is_special(id);
                   })) {
  const int64_t tokens = std::ssize(prompt_ids), read = tokens_read(tokens, config, options);
  limit_ = new_token_limit(read, config, options);
  positions_ = read + std::min(limit_, config.context - read);
  result_.unread = tokens - read;
  result_.prompt_ids = std::move(prompt_ids);
}

EngineRequest Continuation::request() {
  timer_.restart();
  return {.tokens = result_.prompt_ids,
          .unread = result_.unread,
          .next = [this](std::span<const float> logits_V) { return choose(logits_V); },
          .room = std::min(limit_, kRoomAhead),
          .slide = slide_};
}

std::optional<int32_t> Continuation::choose(std::span<const float> logits_V) {
  if (result_.prompt_seconds == 0) {
    result_.prompt_seconds = timer_.seconds();
    timer_.restart();
  }
  const int32_t id = sampler_.pick(logits_V.first(choices_));
  const auto finish = add(id);
  if (!finish) return id;
  result_.finish = *finish;
  return std::nullopt;
}

std::optional<FinishReason> Continuation::add(int32_t id) {
  if (!options_.ignore_end_of_text && tokenizer_.special_ids().is_end(id)) return FinishReason::end_of_text;
  result_.ids.push_back(id);
  auto bytes = tokenizer_.bytes(id);
  if (std::exchange(drops_space_, false) && bytes.starts_with(' ')) bytes.remove_prefix(1);
  show(stream_.push(bytes));
  if (stream_.stopped()) return FinishReason::stop_string;
  if (std::ssize(result_.ids) == limit_) return FinishReason::length;
  if (options_.stop_on_signals && stop_signal() != 0) return FinishReason::interrupted;
  return std::nullopt;
}

void Continuation::finish(const SequenceCounts& counts) {
  result_.decode_seconds = timer_.seconds();
  result_.reused = counts.reused;
  result_.decode_steps = counts.steps;
  result_.slides = counts.slides;
  show(stream_.finish());
}

void Continuation::show(const std::string& text) {
  result_.text += text;
  if (on_text_ && !text.empty()) on_text_(text);
}

}  // namespace prism
