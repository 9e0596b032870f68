#include "prism/generation/generate.h"

#include <algorithm>
#include <optional>
#include <span>

#include "prism/attention/prefill.h"
#include "prism/core/error.h"
#include "prism/core/stop.h"
#include "prism/core/text/utf8.h"
#include "prism/core/timer.h"
#include "prism/generation/text_stream.h"
#include "prism/models/chunks.h"

namespace prism {
namespace {

std::vector<int32_t> encode_prompt(const Tokenizer& tokenizer, std::string_view prompt) {
  const size_t invalid = find_invalid_utf8(prompt);
  PRISM_CHECK(invalid == std::string_view::npos, "generate",
              "expected a prompt in UTF-8; found byte 0x{:02X} at offset {}; convert it.",
              static_cast<uint8_t>(prompt[invalid]), invalid);
  const SpecialIds& special = tokenizer.special_ids();
  std::vector<int32_t> ids;
  if (!prompt.empty()) ids = tokenizer.encode(prompt);
  const bool wanted = prompt.empty() || opening == Opening::on || (opening == Opening::automatic && special.opens_prompts);
  PRISM_CHECK(special.opening || (!prompt.empty() && opening != Opening::on), "generate",
              "expected a prompt and --bos auto or off, because the tokenizer has no token that opens a text; found {}; "
              "change it.",
              prompt.empty() ? "no prompt" : "--bos on");
  // A prompt may spell its opening, as the prompts of chat templates do.
  if (wanted && (ids.empty() || ids.front() != *special.opening)) ids.insert(ids.begin(), *special.opening);
  return ids;
}

/// Tokens recomputed when the context is full; 0: the context does not slide. Learned positions have no values beyond
/// the context, so such a context always slides.
int64_t tokens_kept(const ModelConfig& config, bool slide) {
  if (config.learned_positions) return config.context;
  return slide ? std::max<int64_t>(1, config.context / 2) : 0;
}

/// Number of tokens of a prompt that are read. A prompt that is cut leaves room for the new tokens, unless the context
/// slides.
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

/// Logits [V] of the token after `seen`, of which the last `count` are appended to the context's cache.
torch::Tensor next_logits(Decoder& decoder, std::span<const int32_t> seen, int64_t count, ForwardContext context,
                          int64_t chunk = 0) {
  const auto before = seen.first(seen.size() - static_cast<size_t>(count));
  context.word_opening_B = torch::full({1}, decoder->word_opening(before), torch::kLong);
  const auto tokens_BT = torch::empty({1, count}, torch::kLong);
  std::copy(seen.begin() + static_cast<std::ptrdiff_t>(before.size()), seen.end(), tokens_BT.data_ptr<int64_t>());
  const auto hidden_BTD = forward_in_chunks(decoder, tokens_BT, context, chunk);
  return decoder->head.logits(hidden_BTD.narrow(1, hidden_BTD.size(1) - 1, 1)).to(torch::kCPU, torch::kFloat).flatten();
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

std::optional<int64_t> room_behind(const ModelConfig& config, const Tokenizer& tokenizer, std::string_view prompt) {
  const auto tokens = static_cast<int64_t>(encode_prompt(tokenizer, prompt).size());
  const int64_t read = tokens_read(tokens, config, {});
  return config.learned_positions ? std::nullopt : std::optional(config.context - read);
}

Generation generate(Decoder decoder, const Tokenizer& tokenizer, std::string_view prompt,
                    const GenerateOptions& options, const std::function<void(std::string_view)>& on_text,
                    Prefill* prefill) {
  const torch::NoGradGuard no_gradients;
  const ModelConfig& config = decoder->config();
  prefill = prefill_for(config, prefill);
  Generation result;
  result.prompt_ids = encode_prompt(tokenizer, prompt);
  const auto prompt_tokens = static_cast<int64_t>(result.prompt_ids.size());
  const int64_t read = tokens_read(prompt_tokens, config, options), kept = tokens_kept(config, options.slide);
  const int64_t limit = new_token_limit(read, config, options), cached = std::min(read + limit, config.context);
  result.unread = prompt_tokens - read;
  const auto choices = static_cast<size_t>(std::min(config.vocab_size, tokenizer.vocab_size()));
  const std::optional<int32_t> end = options.ignore_end_of_text ? std::nullopt : tokenizer.end_of_text();
  Sampler sampler(options.sampler);
  TextStream stream(options.stop);
  const auto show = [&](const std::string& text) {
    result.text += text;
    if (on_text && !text.empty()) on_text(text);
  };
  /// Adds the next token; returns a reason if generation ends with it.
  const auto finish_with = [&](int32_t id) -> std::optional<FinishReason> {
    if (id == end) return FinishReason::end_of_text;
    result.ids.push_back(id);
    show(stream.push(tokenizer.bytes(id)));
    if (stream.stopped()) return FinishReason::stop_string;
    if (static_cast<int64_t>(result.ids.size()) == limit) return FinishReason::length;
    if (options.stop_on_signals && stop_signal() != 0) return FinishReason::interrupted;
    return std::nullopt;
  };

  KvCache cache(config.layers, /*batch=*/1, cached, decoder->compute_type(), decoder->device());
  ForwardContext context;
  context.cache = &cache;
  context.prefill = prefill;
  auto seen = result.prompt_ids;  // prompt and new tokens
  Timer timer;
  auto logits_V = next_logits(decoder, seen, read, context, prefill == nullptr ? 0 : prefill->options().chunk);
  result.prompt_seconds = timer.seconds();
  context.prefill = nullptr;
  timer.restart();
  for (;;) {
    const int32_t id = sampler.pick(std::span(logits_V.data_ptr<float>(), choices));
    if (const auto finish = finish_with(id)) {
      result.finish = *finish;
      break;
    }
    seen.push_back(id);
    const bool slides = cache.length() == config.context;
    if (slides) cache.truncate(0);
    logits_V = next_logits(decoder, seen, slides ? kept : 1, context);
    result.slides += slides;
    ++result.decode_steps;
  }
  result.decode_seconds = timer.seconds();
  show(stream.finish());
  return result;
}

}  // namespace prism
